"""The files that enter the cache shared with elfutils and GDB, and executables that are taken from it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sframe_unwind.process.debuginfod import Debuginfod
from sframe_unwind.process.files import DEBUG_INFO, EXECUTABLE
from tests.elf.objects import run
from tests.process.command import NOWHERE, Done, backtrace, functions, only_line
from tests.process.debug_server import debug_server
from tests.process.programs import Crash, compiled, crash_of, running

BUILD_ID = "8899aabbccddeeff00112233445566778899aabb"
PATH = f"/buildid/{BUILD_ID}/debuginfo"
EXECUTABLE_PATH = f"/buildid/{BUILD_ID}/executable"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    """Return a debug file and an executable with the build ID, by their kinds."""
    folder: Path = tmp_path_factory.mktemp("debuginfod")
    (folder / "one.c").write_text("int main(void) { return 0; }\n", encoding="utf-8")
    run("gcc", "-g", f"-Wl,--build-id=0x{BUILD_ID}", folder / "one.c", "-o", folder / "one")
    run("objcopy", "--only-keep-debug", folder / "one", folder / "debug")
    run("strip", folder / "one")
    return {DEBUG_INFO: (folder / "debug").read_bytes(), EXECUTABLE: (folder / "one").read_bytes()}


@pytest.fixture(scope="module")
def content(both: Mapping[str, bytes]) -> bytes:
    """Return the contents of the debug file."""
    return both[DEBUG_INFO]


class Client:
    """A client of one server, its messages, and the path of a file in its cache."""

    def __init__(self, address: str, cache: Path, kind: str = DEBUG_INFO) -> None:
        self.said: list[str] = []
        self.cached = cache / BUILD_ID / kind
        self._kind = kind
        environment = {"DEBUGINFOD_URLS": address, "DEBUGINFOD_CACHE_PATH": str(cache)}
        self._client = Debuginfod(environment, self.said.append)

    def fetch(self) -> str | None:
        return self._client.fetch(BUILD_ID, self._kind)


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


def test_an_executable_is_kept_beside_the_debug_file(both: Mapping[str, bytes], tmp_path: Path) -> None:
    served = {PATH: both[DEBUG_INFO], EXECUTABLE_PATH: both[EXECUTABLE]}
    with debug_server(served) as (address, asked):
        for kind, data in both.items():
            client = Client(address, tmp_path, kind)
            assert client.fetch() == str(client.cached)
            assert client.cached.read_bytes() == data
    assert asked == list(served)


def test_a_debug_file_is_not_kept_as_executable(both: Mapping[str, bytes], tmp_path: Path) -> None:
    """It also has the build ID; GDB and elfutils would take its empty sections for code."""
    with debug_server({EXECUTABLE_PATH: both[DEBUG_INFO]}) as (address, _):
        client = Client(address, tmp_path, EXECUTABLE)
        assert client.fetch() is None
    (line,) = client.said
    assert f"the answer for build ID {BUILD_ID} is a debug file, without code" in line
    assert files_below(tmp_path) == []


def test_a_file_that_is_cut_where_nobody_counts(both: Mapping[str, bytes], tmp_path: Path) -> None:
    """There is no Content-Length, and the section headers are at the start: only their contents are missing."""
    data = headers_first(both[EXECUTABLE])
    for size, kept in ((len(data) - 300, False), (len(data), True)):
        with debug_server({EXECUTABLE_PATH: data[:size]}) as (address, _):
            client = Client(address, tmp_path, EXECUTABLE)
            assert (client.fetch() is not None) == kept
        assert any("ends before its contents do" in line for line in client.said) != kept


def headers_first(data: bytes) -> bytes:
    """Return an ELF file with its section headers directly after the program headers, and the contents moved."""
    start = int.from_bytes(data[40:48], "little")
    count = int.from_bytes(data[60:62], "little")
    at, size = len(data), 64 * count
    assert start + size == len(data)
    headers = bytearray(data[start:])
    # The contents stay; the headers describe a second copy of them after the headers.
    for number in range(1, count):
        field = 64 * number + 24
        offset = int.from_bytes(headers[field : field + 8], "little")
        headers[field : field + 8] = (offset + at + size).to_bytes(8, "little")
    return data[:40] + at.to_bytes(8, "little") + data[48:] + bytes(headers) + data[:start]


def test_a_large_file_is_not_begun(both: Mapping[str, bytes], tmp_path: Path) -> None:
    environment = {"DEBUGINFOD_CACHE_PATH": str(tmp_path), "DEBUGINFOD_MAXSIZE": "100000"}
    said: list[str] = []
    with debug_server({EXECUTABLE_PATH: both[EXECUTABLE]}, missing_bytes=1 << 40) as (address, _):
        client = Debuginfod({**environment, "DEBUGINFOD_URLS": address}, said.append)
        assert client.fetch(BUILD_ID, EXECUTABLE) is None
    assert only_line("\n".join(said)).endswith("a file of more than 100,000 bytes: this server is not asked again")
    assert list(tmp_path.rglob("*")) == [tmp_path / BUILD_ID]


def test_what_is_missing_is_asked_for_once(tmp_path: Path) -> None:
    with debug_server({}) as (address, asked):
        client = Client(address, tmp_path)
        assert client.fetch() is client.fetch() is None
    assert (asked, client.said, list(tmp_path.iterdir())) == ([PATH], [], [])


def test_a_cache_that_cannot_be_written(content: bytes, tmp_path: Path) -> None:
    """This is not an error of the server, and no server is asked again."""
    (tmp_path / "file").touch()
    with debug_server({PATH: content}) as (address, asked):
        client = Client(f"{address} {address}/", tmp_path / "file")
        assert client.fetch() is None
    (line,) = client.said
    assert "Not a directory" in line
    assert line.endswith(": nothing is downloaded")
    assert asked == [PATH]


@pytest.mark.parametrize("digits", [129, 1 << 16])
def test_a_build_id_of_implausible_size_is_not_asked_for(digits: int, tmp_path: Path) -> None:
    with debug_server({}) as (address, asked):
        environment = {"DEBUGINFOD_URLS": address, "DEBUGINFOD_CACHE_PATH": str(tmp_path)}
        assert Debuginfod(environment, pytest.fail).fetch("a" * digits, EXECUTABLE) is None
    assert asked == []


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Crash:
    """Build a program with debug information, and its core file."""
    return crash_of("odd.c", "*clobber+3", tmp_path_factory.mktemp("crash"))


@pytest.fixture
def crash(original: Crash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crash]:
    """Yield the program and its core file; the program is not at its path, and the cache is empty."""
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    moved = Path(shutil.copy(original.program, tmp_path / "moved"))
    away = original.program.rename(original.program.with_suffix(".away"))
    try:
        yield original._replace(program=moved)
    finally:
        away.rename(original.program)


def with_server(served: Mapping[str, bytes], monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> Done:
    with debug_server(served) as (address, _):
        monkeypatch.setenv("DEBUGINFOD_URLS", address)
        return backtrace(*arguments, *NOWHERE, "--debuginfod")


@pytest.mark.parametrize("at_its_path", ["nothing", "another build"])
def test_executable_of_a_core_file(
    at_its_path: str, crash: Crash, original: Crash, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = {f"/buildid/{crash.build_id}/executable": crash.program.read_bytes()}
    expected = backtrace("--core", crash.core, "--exe", crash.program, *NOWHERE)
    if at_its_path != "nothing":
        shutil.copy("/bin/true", original.program)
    done = with_server(served, monkeypatch, "--core", crash.core)
    assert (done.status, done.errors) == (expected.status, expected.errors) == (0, "")
    assert done.output == expected.output
    assert "clobber+0x3 (odd+" in done.output


@pytest.mark.parametrize("answer", [None, b"\x7fELF" + bytes(100), "debug file"])
def test_executable_that_no_server_has(
    answer: bytes | str | None, crash: Crash, original: Crash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stacks are those without a server, and the user gets the reason once."""
    if answer == "debug file":
        run("objcopy", "--only-keep-debug", crash.program, tmp_path / "debug")
        answer = (tmp_path / "debug").read_bytes()
    assert not isinstance(answer, str)
    shutil.copy("/bin/true", original.program)
    served = {f"/buildid/{crash.build_id}/executable": answer} if answer is not None else {}
    without = backtrace("--core", crash.core, *NOWHERE)
    done = with_server(served, monkeypatch, "--core", crash.core)
    assert (done.status, done.output) == (without.status, without.output)
    assert done.status == 2
    added = set(done.errors.splitlines()) - set(without.errors.splitlines())
    assert len(added) == (answer is not None)
    assert "this file is not used" in done.errors
    assert not list((tmp_path / "cache").rglob("executable"))


def test_library_that_a_process_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without access to `map_files`, the name of a local function comes from the downloaded file."""
    library = tmp_path / "libdeep.so"
    compiled("deep.c", tmp_path, "-shared", "-fPIC", "-Wl,-soname,libdeep.so").rename(library)
    program = compiled("calls_deep.c", tmp_path, "-Wl,--no-as-needed", str(library), "-Wl,-rpath,$ORIGIN")
    content = library.read_bytes()
    build_id = build_id_of(library)
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    monkeypatch.setattr("sframe_unwind.process.live._MAP_FILES", "/nonexistent/{}")
    with running(program) as process:
        library.unlink()
        served = {f"/buildid/{build_id}/executable": content}
        done = with_server(served, monkeypatch, "--pid", str(process), "--json")
        stack = functions(done.threads[str(process)])
    assert stack[stack.index("inner") :][:3] == ["inner", "outer", "main"]
    assert (done.status, done.errors) == (0, "")
    assert [path.name for path in (tmp_path / "cache" / build_id).iterdir()] == ["executable"]


def build_id_of(path: Path) -> str:
    notes = subprocess.run(["readelf", "-n", str(path)], check=True, capture_output=True, text=True).stdout
    return notes.split("Build ID: ")[1].split()[0]
