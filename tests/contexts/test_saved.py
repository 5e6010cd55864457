"""`backtrace --ucontext` and `--jmpbuf` for a running process, and for QEMU's core files of the other machines."""

from __future__ import annotations

import re
import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.abis.debuggers import sysroot
from tests.contexts.expected import built
from tests.hanging import HANG
from tests.process.command import NOWHERE, backtrace, functions, only_line
from tests.process.programs import running
from tests.samples.catalogue import ABIS

SECONDS = HANG
FIBER, JUMP, TRAP = [*["fiber_inner"] * 4, "fiber_body"], [*["jump_inner"] * 3, "jump_body"], ["trap", "trap_inner"]
CONTEXTS = {
    "fiber": ("--ucontext", FIBER),
    "jumping": ("--ucontext", JUMP),
    "interrupted": ("--ucontext", TRAP),
    "jump": ("--jmpbuf", JUMP),
    "signal_jump": ("--jmpbuf", JUMP),
}
"""Variables of contexts.c, the option for their address, and the functions from the innermost outward."""


@contextmanager
def left(abi: str, executable: Path, folder: Path) -> Iterator[list[str | Path]]:
    """Yield the options for the program at a stop where none of its contexts runs."""
    if not ABIS[abi].emulator:
        with running(executable, "wait") as process:
            yield ["--pid", str(process)]
        return
    yield ["--core", _emulators_core(abi, executable, folder), "--exe", executable, "--sysroot", sysroot(abi)]


def _emulators_core(abi: str, executable: Path, folder: Path) -> Path:
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    program = subprocess.Popen(
        [*ABIS[abi].emulator, str(executable), "wait"],
        stdout=subprocess.PIPE,
        cwd=folder,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (most, most)),
    )
    with program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        program.send_signal(signal.SIGQUIT)
        program.wait(SECONDS)
    (core,) = folder.glob("qemu_*.core")
    return core


def address_of(variable: str, executable: Path) -> str:
    symbols = subprocess.run(["nm", str(executable)], check=True, capture_output=True, text=True).stdout
    found = re.search(rf"^([0-9a-f]+) \w {variable}$", symbols, re.MULTILINE)
    assert found is not None, symbols
    return f"0x{found[1]}"


@pytest.mark.parametrize("abi", ["amd64", "aarch64", "s390x"])
def test_contexts(abi: str, tmp_path: Path) -> None:
    executable = built(abi, tmp_path, "-no-pie", "-fno-pie")
    with left(abi, executable, tmp_path) as options:
        for variable, (option, expected) in CONTEXTS.items():
            address = address_of(variable, executable)
            done = backtrace(*options, option, address, "--json", *NOWHERE)
            assert (done.status, done.errors) == (0, ""), f"{variable}: {done.errors}"
            assert functions(done.threads["context"])[: len(expected)] == expected, variable
        empty = address_of("empty", executable)
        for option, kind in {"--ucontext": "ucontext_t", "--jmpbuf": "jmp_buf"}.items():
            done = backtrace(*options, option, empty, *NOWHERE)
            assert done.status == 2
            assert only_line(done.errors).startswith(f"sframe-unwind: {kind} at {int(empty, 16):#x}: ")


def test_wrong_usage() -> None:
    assert "--ucontext: main: not an address" in backtrace("--pid", "1", "--ucontext", "main").errors
    assert "not allowed with argument --ucontext" in backtrace("--pid", "1", "--ucontext", "1", "--jmpbuf", "2").errors
