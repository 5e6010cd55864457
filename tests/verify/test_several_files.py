"""`verify` of several files at the same time: interrupts, closed pipes, killed workers, the progress bar."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.elf.objects import run, tools_for
from tests.hanging import HANG
from tests.samples.build import build
from tests.waiting import runs, wait_until

FUNCTIONS = 20_000
"""The functions in a file that takes some seconds to verify."""


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an object file with many functions."""
    folder: Path = tmp_path_factory.mktemp("large")
    source, made = folder / "large.s", folder / "large.o"
    function = ".cfi_startproc\npush %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset rbx, -16\nret\n.cfi_endproc\n"
    source.write_text("".join(f"f{n}: {function}.size f{n}, . - f{n}\n" for n in range(FUNCTIONS)), encoding="ascii")
    run(tools_for("amd64", 3) / "as", "--gsframe", "-o", made, source)
    return made


def start(*arguments: object, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "sframe_unwind", "verify", *map(str, arguments)]
    return subprocess.Popen(command, text=True, start_new_session=True, **options)  # type: ignore[call-overload, no-any-return]


def children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    return [int(number) for number in text.split()]


def working(program: subprocess.Popen[str], count: int = 2) -> list[int]:
    """Return the workers of a program, the first one first, once there are as many as expected."""
    wait_until(lambda: len(children(program.pid)) == count, "workers")
    return children(program.pid)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_signal_ends_all_at_once(large: Path, number: signal.Signals, status: int) -> None:
    program = start("-j2", *[large] * 6, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    workers = working(program)
    (os.killpg if number is signal.SIGINT else os.kill)(program.pid, number)
    out, err = program.communicate(timeout=HANG)
    wait_until(lambda: not any(map(runs, workers)), "workers have ended")
    assert (program.returncode, out, err) == (status, "", "")


def test_reader_that_has_read_enough(large: Path) -> None:
    """Each file's lines are printed when it has been verified, and a closed pipe ends the work."""
    program = start("-j2", build("leaf", "aarch64"), *[large] * 6, stdout=subprocess.PIPE)
    assert program.stdout is not None
    assert "functions in both" in program.stdout.readline()
    workers = working(program)
    program.stdout.close()
    assert program.wait(timeout=HANG) == 141
    assert not any(map(runs, workers))


def test_worker_that_is_killed_costs_its_file_only(large: Path) -> None:
    small = build("leaf", "aarch64")
    program = start("-j2", large, *[small] * 4, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.kill(working(program)[0], signal.SIGKILL)  # it has the large file
    out, err = program.communicate(timeout=HANG)
    assert program.returncode == 2
    assert out.count(f"{small}: ") == 4
    assert err == f"sframe-unwind: {large}: the process that worked on it was ended by SIGKILL\n"


def at_terminal(*arguments: object, output: bool) -> str:
    """Return the output to a terminal of `verify` whose progress bar appears at once, however fast the machine is.

    :param output: whether standard output is the terminal too.
    """
    terminal, end = pty.openpty()
    at_once = "import sframe_unwind.cli as cli, sframe_unwind.cli.progress as bar, sys; bar._PATIENCE = bar._PAUSE = 0"
    program = subprocess.Popen(
        [sys.executable, "-c", f"{at_once}; sys.exit(cli.main())", "verify", *map(str, arguments)],
        stdout=end if output else subprocess.DEVNULL,
        stderr=end,
    )
    os.close(end)
    received = b""
    with contextlib.suppress(OSError):  # the program has ended
        while piece := os.read(terminal, 4096):
            received += piece
    os.close(terminal)
    assert program.wait(timeout=HANG) == 0
    return received.decode("ascii")


def test_progress_at_a_terminal(large: Path) -> None:
    """The bar moves while a file is worked on, and no line of the output comes after it."""
    shown = at_terminal("-j2", *[large] * 6, output=True).split("\r")
    bars = [piece for piece in shown if "/6 files, " in piece]
    assert len(bars) >= 2
    lines = [piece for piece in shown if "functions in both" in piece]
    assert len(lines) == 6
    assert all(f"{large}: " in line.removeprefix("\x1b[K")[: len(str(large)) + 3] for line in lines)


def test_progress_within_a_file(large: Path) -> None:
    shown = at_terminal(large, output=False).split("\r")
    assert len({piece for piece in shown if f"/{FUNCTIONS} functions, " in piece}) >= 2
