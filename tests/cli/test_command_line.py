"""Behaviour that all commands share: exit statuses, one line per error, no tracebacks."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import sframe_unwind
from sframe_unwind.cli import COMMANDS, main
from tests.cli.sections import AMD64, elf, small
from tests.hanging import HANG
from tests.missing import not_on_this_system
from tests.waiting import wait_until_idle

TIMEOUT = HANG
"""Time limit for a command, in seconds."""

COMMAND = [sys.executable, "-m", "sframe_unwind"]


def run(*arguments: str, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run the command line in another process.

    :param before: a command that starts it.
    """
    command = [*before, *COMMAND, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)


def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"sframe-unwind {sframe_unwind.__version__}\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert said.startswith(f"usage: sframe-unwind {command}")
    assert f"examples:\n  sframe-unwind {command} " in said
    with pytest.raises(SystemExit):
        main(["--help"])
    assert f"    {command} " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "sframe-unwind: the following arguments are required: COMMAND (try sframe-unwind --help)"),
        (["dump"], "sframe-unwind: dump: the following arguments are required: FILE (try sframe-unwind dump --help)"),
        (["dump", "x", "--js"], "sframe-unwind: dump: unrecognized arguments: --js (try sframe-unwind dump --help)"),
        (["--js"], "sframe-unwind: the following arguments are required: COMMAND (try sframe-unwind --help)"),
        (["lookup", "x"], "sframe-unwind: lookup: the following arguments are required: ADDRESS"),
        (["dmup"], "sframe-unwind: argument COMMAND: invalid choice: 'dmup'"),
    ],
)
def test_wrong_usage_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(said)
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("argument", "before", "after"),
    [
        ("FILE", "dump", ""),
        ("FILE", "lookup", "0x10"),
        ("FILE", "lint x", ""),
        ("--sarif", "lint x --sarif", ""),
        ("FILE", "verify", "x"),
        ("--html", "verify x --html", ""),
        ("--baseline", "verify x --baseline", ""),
        ("--write-baseline", "verify x --write-baseline", ""),
        ("FILE", "convert -o out", ""),
        ("-o/--output", "convert x -o", ""),
        ("FILE", "annotate", ""),
        ("-p/--source-dir", "annotate x -p", ""),
        ("PERF.DATA", "perf", ""),
        ("--folded", "perf x --folded", ""),
        ("--debug-dir", "perf x --debug-dir", ""),
        ("--core", "backtrace --core", ""),
        ("--vmcore", "backtrace --vmcore", ""),
        ("--exe", "backtrace --core x --exe", ""),
        ("--modules", "backtrace --vmcore x --exe y --modules", ""),
        ("--sysroot", "backtrace --core x --sysroot", ""),
        ("PATH", "survey --store x", ""),
        ("--store", "survey --store", "x"),
        ("--diff", "survey --diff x", ""),
        ("--csv", "survey --store x --csv", ""),
    ],
)
def test_an_empty_name_is_no_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    argument: str,
    before: str,
    after: str,
) -> None:
    """The empty name would be the current folder, or a message about a file without a name."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([*before.split(), "", *after.split()])
    assert ended.value.code == 2
    said = f"{before.split()[0]}: argument {argument}: expected the name of a file or a folder, found ''"
    assert capsys.readouterr().err.startswith(f"sframe-unwind: {said} (try ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["dump"], ["dump", "--json"], ["lookup"]])
def test_unusable_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    text, empty, cut, none, locked = (tmp_path / name for name in ("text", "empty", "cut", "none", "locked"))
    text.write_text("no ELF at all, though it is long enough for a header of one" * 9)
    empty.touch()
    cut.write_bytes(small(tmp_path / "whole").read_bytes()[:100])
    elf(none, AMD64)
    small(locked).chmod(0)
    reasons = {
        tmp_path: "Is a directory",
        tmp_path / "absent": "No such file or directory",
        text: "not a readable ELF file",
        empty: "the file is empty",
        cut: "",
        none: "no .sframe section",
    }
    if os.access(locked, os.R_OK) is False:
        reasons[locked] = "Permission denied"
    for file, reason in reasons.items():
        assert main([*command, str(file), *(["0x10"] if command == ["lookup"] else [])]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith(f"sframe-unwind: {file}: {reason}")
        assert printed.err.count("\n") == printed.err.count(str(file)) == 1


def test_file_name_that_is_no_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff\x1b[31m\n")
    done = run("dump", "--json", str(small(tmp_path / name)))
    assert done.returncode == 0
    assert '\\udcff\\u001b[31m\\n"' in done.stdout
    done = run("dump", str(tmp_path / f"{name}absent"))
    assert done.returncode == 2
    assert "\\udcff\\x1b[31m\\nabsent: No such file" in done.stderr


def test_closed_pipe_is_no_error(tmp_path: Path) -> None:
    file = small(tmp_path / "file", 5_000)
    process = subprocess.Popen([*COMMAND, "dump", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(TIMEOUT) == 141


def test_closed_output_is_no_error(tmp_path: Path) -> None:
    command = '"$@" >&-'
    done = subprocess.run(
        ["sh", "-c", command, "sh", *COMMAND, "dump", str(small(tmp_path / "file"))],
        stderr=subprocess.PIPE,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_full_disk_is_one_line(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        not_on_this_system("no /dev/full, which a full disk stands for")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "dump", str(small(tmp_path / "file"))],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "sframe-unwind: cannot write: No space left on device\n")


def test_interrupt(tmp_path: Path) -> None:
    file = small(tmp_path / "file", 5_000)
    process = subprocess.Popen([*COMMAND, "dump", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()  # it is running
    wait_until_idle(process.pid)  # it waits for a reader
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, error) == (130, b"")


def test_output_that_takes_ascii_only(tmp_path: Path) -> None:
    file = small(tmp_path / "file")
    elf(file, AMD64, file.read_bytes()[64 : 64 + 56], symbols=[("größe".encode(), 0, 16)])
    done = subprocess.run(
        [*COMMAND, "lookup", str(file), "0x0"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.stdout.startswith("0x0: gr\\xf6\\xdfe\n")


def test_bugs_are_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(_: object) -> int:
        raise TypeError("of all things")

    monkeypatch.setattr(COMMANDS["dump"], "run", broken)
    assert main(["dump", "file"]) == 70
    line = "sframe-unwind: internal error: TypeError: of all things (SFRAME_UNWIND_TRACEBACK=1 shows where)\n"
    assert capsys.readouterr().err == line
    monkeypatch.setenv("SFRAME_UNWIND_TRACEBACK", "1")
    assert main(["dump", "file"]) == 70
    error = capsys.readouterr().err
    assert error.startswith("Traceback (most recent call last):")
    assert error.endswith(f"\nTypeError: of all things\n{line}")


def arguments_for(command: str, file: Path) -> list[str]:
    """Return the arguments with which a command reads a file."""
    more = {"lookup": [str(file), "0"], "backtrace": ["--core", str(file)], "convert": [str(file), "-o", f"{file}.out"]}
    return [command, *more.get(command, [str(file)])]


READING = ["verify", "lint", "dump", "lookup", "convert", "annotate", "backtrace"]
"""The commands that read a file."""


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize("name", ["fifo", "/dev/zero", "socket", "loop"])
def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path, command: str, name: str) -> None:
    file = tmp_path / name
    if name == "fifo":
        os.mkfifo(file)
    elif name == "socket":
        socket.socket(socket.AF_UNIX).bind(str(file))
    elif name == "loop":
        file.symlink_to("loop")
    done = run(*arguments_for(command, file))
    # Nothing can open a socket's file.
    why = {"socket": "No such device or address", "loop": "Too many levels of symbolic links"}.get(
        name, "not a regular file"
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"sframe-unwind: {file}: {why}\n")


@pytest.mark.parametrize("command", READING)
def test_name_that_is_too_long(tmp_path: Path, command: str) -> None:
    """Asking whether it is a directory fails like opening it, for all users, unlike in a locked directory."""
    file = tmp_path / ("x" * 300)
    done = run(*arguments_for(command, file))
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"sframe-unwind: {file}: File name too long\n")


@pytest.mark.parametrize("command", [["verify", "--html"], ["lint", "--sarif"]])
def test_output_with_a_name_that_is_too_long(tmp_path: Path, command: list[str]) -> None:
    file, output = small(tmp_path / "file"), tmp_path / ("x" * 300)
    done = run(*command, str(output), str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"{output}: cannot be written: File name too long\n")


# The capabilities by which root can search every directory.
AS_OTHERS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.getuid() == 0 else ()


@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_locked_directory(tmp_path: Path, mode: int) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    file = small(locked / "file")
    locked.chmod(mode)
    try:
        for command in READING:
            done = run(*arguments_for(command, file), before=AS_OTHERS)
            assert (done.returncode, done.stderr) == (2, f"sframe-unwind: {file}: Permission denied\n"), command
        done = run("verify", str(tmp_path), before=AS_OTHERS)
        assert done.stderr == f"sframe-unwind: {file if mode else locked}: Permission denied\n"
        store = str(tmp_path / "store")
        done = run("survey", "--store", store, str(file), str(tmp_path), before=AS_OTHERS)
        assert done.returncode in (0, 1)
        assert "Permission denied" in done.stdout
    finally:
        locked.chmod(0o755)


def test_directory_with_all_kinds_of_entries(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "self").symlink_to(".")
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / os.fsdecode(b"\xff\x1b[2J")).write_bytes(b"\x7fELF\x02")
    small(tmp_path / "with SFrame")
    done = run("verify", str(tmp_path))
    assert done.returncode == 2
    no_cfi, cut = done.stderr.splitlines()
    assert cut.startswith(f"sframe-unwind: {tmp_path}/\\udcff\\x1b[2J: not a readable ELF file")
    assert no_cfi == f"sframe-unwind: {tmp_path}/with SFrame: no DWARF CFI to compare with"


@pytest.mark.parametrize("command", READING)
def test_name_that_is_no_utf_8(tmp_path: Path, command: str) -> None:
    file = small(tmp_path / os.fsdecode(b"\xff\x1b[31m"))
    done = run(*arguments_for(command, file))
    assert done.returncode in (0, 1, 2)
    assert "internal error" not in done.stderr
    assert (done.stdout + done.stderr).replace("\n", "").isprintable()
    assert done.stderr.count("\n") == (done.returncode == 2)


@pytest.mark.parametrize("command", [["verify", "-j2"], ["lint"], ["lookup"]])
def test_pipe_that_is_closed_early(tmp_path: Path, command: list[str]) -> None:
    """The reader closes the pipe while several files, or many addresses, are processed."""
    files = [str(small(tmp_path / f"file{number}", 2_000)) for number in range(8)]
    typed = b"0x10\n" * 200_000 if command == ["lookup"] else b""
    words = [*COMMAND, *command, *([files[0], "-"] if typed else files)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, error = process.communicate(typed, timeout=TIMEOUT)
    lines = error.decode().splitlines()
    assert all("no DWARF CFI to compare with" in line for line in lines) or command == ["lint"], error
    assert process.returncode in (141, 2)
    assert process.returncode == 141 or lines


@pytest.mark.parametrize("command", READING)
def test_file_that_shrinks_meanwhile(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """A command reads it at different times, and prints the result, or an error in one line."""
    file = small(tmp_path / "file", 300)
    content, done, seen = file.read_bytes(), threading.Event(), set()

    def change() -> None:
        chance = random.Random(command)
        while not done.is_set():
            with file.open("r+b") as stream:
                stream.write(content)
                stream.flush()
                stream.truncate(chance.randrange(len(content)))
            time.sleep(0.001)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(60):
            seen.add(main(arguments_for(command, file)))
            error = capsys.readouterr().err
            assert "internal error" not in error
            assert error.count("\n") <= 1
    finally:
        done.set()
        changing.join()
    assert seen <= {0, 1, 2}
    assert 2 in seen
