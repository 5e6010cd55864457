"""What enters the cache that this client shares with elfutils and GDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.process.debuginfod import Debuginfod
from tests.elf.objects import run
from tests.process.debug_server import debug_server

BUILD_ID = "8899aabbccddeeff00112233445566778899aabb"
PATH = f"/buildid/{BUILD_ID}/debuginfo"


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return a debug file with the build ID."""
    folder: Path = tmp_path_factory.mktemp("debuginfod")
    (folder / "one.c").write_text("int main(void) { return 0; }\n", encoding="utf-8")
    run("gcc", "-g", f"-Wl,--build-id=0x{BUILD_ID}", folder / "one.c", "-o", folder / "one")
    run("objcopy", "--only-keep-debug", folder / "one", folder / "debug")
    return (folder / "debug").read_bytes()


class Client:
    """A client of one server, its messages, and the place of the debug file in its cache."""

    def __init__(self, address: str, cache: Path) -> None:
        self.said: list[str] = []
        self.cached = cache / BUILD_ID / "debuginfo"
        environment = {"DEBUGINFOD_URLS": address, "DEBUGINFOD_CACHE_PATH": str(cache)}
        self._client = Debuginfod(environment, self.said.append)

    def fetch(self) -> str | None:
        return self._client.fetch(BUILD_ID)


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_whole_file_is_kept(content: bytes, tmp_path: Path) -> None:
    with debug_server({PATH: content}) as (address, asked):
        client = Client(address, tmp_path)
        assert client.fetch() == client.fetch() == str(client.cached)
    assert (asked, client.said) == ([PATH], [])
    assert client.cached.read_bytes() == content


def test_a_cut_answer_is_not_kept(content: bytes, tmp_path: Path) -> None:
    with debug_server({PATH: content}, missing_bytes=1000) as (address, _):
        client = Client(address, tmp_path)
        assert client.fetch() is None
    (line,) = client.said
    assert f"the answer ends after {len(content):,} of {len(content) + 1000:,} bytes" in line
    assert files_below(tmp_path) == []


@pytest.mark.parametrize(
    "answer", [b"<html>please log in</html>", b"", b"\x7fELF" + bytes(100)], ids=["html", "empty", "elf"]
)
def test_an_answer_that_is_another_file_is_not_kept(answer: bytes, tmp_path: Path) -> None:
    with debug_server({PATH: answer}) as (address, _):
        client = Client(address, tmp_path)
        assert client.fetch() is None
    (line,) = client.said
    assert f"the answer for build ID {BUILD_ID} is not an ELF file with this build ID" in line
    assert files_below(tmp_path) == []


def test_a_file_with_another_build_id_is_not_kept(content: bytes, tmp_path: Path) -> None:
    other = content.replace(bytes.fromhex(BUILD_ID), bytes(20))
    assert other != content
    with debug_server({PATH: other}) as (address, _):
        assert Client(address, tmp_path).fetch() is None
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("size", [0, 40, 500])
def test_a_bad_file_in_the_cache_is_downloaded_again(content: bytes, tmp_path: Path, size: int) -> None:
    with debug_server({PATH: content}) as (address, asked):
        client = Client(address, tmp_path)
        client.cached.parent.mkdir(parents=True)
        client.cached.write_bytes(content[:size])
        assert client.fetch() == str(client.cached)
    assert (asked, client.said) == ([PATH], [])
    assert client.cached.read_bytes() == content
