"""Source lines and inlined functions: separate debug files, downloads, how they are shown."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from tests.hanging import HANG
from tests.missing import zstd_needed
from tests.process.command import NOWHERE, Done, backtrace, only_line
from tests.process.debug_server import debug_server
from tests.process.programs import Crash, crash_of


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Crash:
    return crash_of("inlined.cpp", "stop_here", tmp_path_factory.mktemp("lines"))


@pytest.fixture
def crash(original: Crash, tmp_path: Path) -> Crash:
    """Return the same, with the debug information in another file, `debug` beside the program."""
    program, debug = tmp_path / "stripped", tmp_path / "debug"
    run("objcopy", "--only-keep-debug", original.program, debug)
    run("objcopy", "--strip-debug", f"--add-gnu-debuglink={debug}", original.program, program)
    return original._replace(program=program)


def run(*command: str | Path) -> str:
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, timeout=HANG).stdout


def lines(done: Done) -> list[tuple[str, str | None, int | None]]:
    """Return function, file without folder and line of the frames in the program."""
    (frames,) = done.threads.values()
    own = [frame for frame in frames if frame["module"].rpartition("/")[2] in ("inlined", "stripped")]
    return [(frame["function"], frame["file"] and Path(frame["file"]).name, frame["line"]) for frame in own[:4]]


LINES = [
    ("stop_here", "inlined.cpp", 6),
    ("shapes::Square::area() const", "inlined.cpp", 15),
    ("double_area", "inlined.cpp", 24),
    ("main", "inlined.cpp", 30),
]
WITHOUT = [("stop_here", None, None), ("main", None, None), ("_start", None, None)]


def test_inlined_functions_in_text(original: Crash) -> None:
    done = backtrace("--core", original.core, *NOWHERE)
    text = [" ".join(line.split()) for line in done.output.splitlines()[1:5]]
    assert text[0].endswith(f"stop_here at inlined.cpp:6 (inlined+{text[0].rpartition('+')[2].split(')')[0]}) sframe")
    assert "shapes::Square::area() const at inlined.cpp:15 (" in text[1]
    assert [line.rpartition(" ")[2] for line in text] == ["sframe", "inlined", "inlined", "sframe"]
    assert [line.split()[0] for line in text] == ["#0", "#1", "#2", "#3"]
    assert text[1].split()[1] == text[3].split()[1]  # one frame of the machine


def test_json_says_which_frames_are_inlined(original: Crash) -> None:
    done = backtrace("--core", original.core, "--json", *NOWHERE)
    assert lines(done) == LINES
    (frames,) = done.threads.values()
    assert [frame["inlined"] for frame in frames[:4]] == [False, True, True, False]
    assert Path(frames[1]["file"]).is_absolute()


def test_no_lines(original: Crash) -> None:
    done = backtrace("--core", original.core, "--json", "--no-lines", *NOWHERE)
    assert lines(done)[:3] == WITHOUT


@pytest.mark.parametrize("version", ["-gdwarf-5", "-gdwarf-4"])
def test_split_debug_information_is_named(version: str, tmp_path: Path) -> None:
    crash = crash_of("inlined.cpp", "stop_here", tmp_path, "-gsplit-dwarf", version)
    done = backtrace("--core", crash.core, "--json", *NOWHERE)
    assert [name for name, _, _ in lines(done)[:2]] == ["stop_here", "main"]
    lost = "its debug information is in other files (.dwo, .dwp), which are not read: inlined functions are missing"
    assert (done.status, only_line(done.errors)) == (0, f"sframe-unwind: {crash.program}: {lost}")


def test_debug_information_compressed_by_zstd(original: Crash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zstd_needed()
    program = tmp_path / "inlined"
    run("objcopy", "--compress-debug-sections=zstd", original.program, program)
    arguments = ("--core", original.core, "--exe", program, "--json", *NOWHERE)
    assert lines(backtrace(*arguments)) == LINES
    for name in ("compression.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    assert lines(backtrace(*arguments)) == LINES
    monkeypatch.setattr("sframe_unwind.decompression.zstd._LIBRARY", "libno-such-library.so.1")
    assert lines(backtrace(*arguments)) == LINES
    monkeypatch.setattr("sframe_unwind.decompression.zstd._PROGRAM", "no-such-program")
    done = backtrace(*arguments)
    assert lines(done)[:3] == WITHOUT
    missing = r": \.debug_\w+ cannot be decompressed: Zstandard needs Python 3.14, the package zstandard .*"
    assert re.fullmatch(f"sframe-unwind: {program}{missing}", only_line(done.errors))


def test_debug_file_by_build_id(crash: Crash, tmp_path: Path) -> None:
    place = tmp_path / "tree" / ".build-id" / crash.build_id[:2] / f"{crash.build_id[2:]}.debug"
    place.parent.mkdir(parents=True)
    (tmp_path / "debug").rename(place)
    assert lines(read(crash, "--debug-dir", tmp_path / "tree")) == LINES
    assert lines(read(crash, *NOWHERE))[:3] == WITHOUT


def read(crash: Crash, *options: str | Path) -> Done:
    """Return what the command prints about the core file, with the program at another path."""
    done = backtrace("--core", crash.core, "--exe", crash.program, "--json", *options)
    assert done.status == 0, done.errors
    return done


@pytest.mark.parametrize("place", [".", ".debug", "tree"])
def test_debug_file_by_debug_link(crash: Crash, tmp_path: Path, place: str) -> None:
    folder = tmp_path / "tree" / str(tmp_path).lstrip("/") if place == "tree" else tmp_path / place
    folder.mkdir(parents=True, exist_ok=True)
    if place != ".":
        (tmp_path / "debug").rename(folder / "debug")
    options = ("--debug-dir", tmp_path / "tree") if place == "tree" else NOWHERE
    assert lines(read(crash, *options)) == LINES


def test_debug_link_with_another_checksum(crash: Crash, tmp_path: Path) -> None:
    with (tmp_path / "debug").open("ab") as stream:
        stream.write(b"\0")
    assert lines(read(crash, *NOWHERE))[:3] == WITHOUT


def test_debuginfod(crash: Crash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = (tmp_path / "debug").read_bytes()
    (tmp_path / "debug").unlink()
    path = f"/buildid/{crash.build_id}/debuginfo"
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    with debug_server({path: content}) as (address, asked):
        monkeypatch.setenv("DEBUGINFOD_URLS", f"{address}/ http://127.0.0.1:1")
        assert lines(read(crash, *NOWHERE))[:3] == WITHOUT
        assert not asked  # only where the user wants it
        assert lines(read(crash, *NOWHERE, "--debuginfod")) == LINES
        assert path in asked
        asked.clear()
        assert lines(read(crash, *NOWHERE, "--debuginfod")) == LINES
        assert path not in asked  # it is in the cache
    assert (tmp_path / "cache" / crash.build_id / "debuginfo").read_bytes() == content


def test_debuginfod_that_does_not_work(crash: Crash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "debug").unlink()
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    done = backtrace("--core", crash.core, *NOWHERE, "--debuginfod")
    assert (done.status, done.output) == (2, "")
    assert "--debuginfod: DEBUGINFOD_URLS names no server" in only_line(done.errors)
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1")
    done = read(crash, *NOWHERE, "--debuginfod")
    assert only_line(done.errors).startswith("sframe-unwind: debuginfod: http://127.0.0.1:1: ")
    with debug_server({f"/buildid/{crash.build_id}/debuginfo": bytes(5000)}) as (address, _):
        monkeypatch.setenv("DEBUGINFOD_URLS", address)
        monkeypatch.setenv("DEBUGINFOD_MAXSIZE", "4000")
        assert "a file of more than 4,000 bytes" in only_line(read(crash, *NOWHERE, "--debuginfod").errors)
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_a_terminal_narrower_than_the_lines(original: Crash) -> None:
    """The place in the file and the unwinder stay whole; `--wide`, and output to a file, cut nothing."""

    def shown(columns: int, *options: str) -> list[str]:
        command = ["-m", "sframe_unwind", "backtrace", "--core", str(original.core), "--no-lines", *NOWHERE, *options]
        text = pexpect.run(shlex.join([sys.executable, *command]), encoding="utf-8", env=width(columns), timeout=HANG)
        return [line for line in text.splitlines() if line.startswith("#")]

    def width(columns: int) -> dict[str, str]:
        return {**os.environ, "COLUMNS": str(columns)}

    wide, narrow = shown(72, "--wide"), shown(72)
    piped = backtrace("--core", original.core, "--no-lines", *NOWHERE).output
    assert wide == shown(300) == [line for line in piped.splitlines() if line.startswith("#")]
    assert max(map(len, wide)) > 72
    assert max(map(len, narrow)) <= 72
    assert len(narrow) == len(wide)
    for cut, whole in zip(narrow, wide):
        assert cut.split()[-2:] == whole.split()[-2:]
    assert any("..." in line for line in narrow)
