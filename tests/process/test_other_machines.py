"""Processes on machines other than this one: the answers of their kernel are emulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.arch import ARCHES
from tests.abis.debuggers import sysroot
from tests.expectations import STOPS
from tests.process.command import EMULATOR, NOWHERE, backtrace
from tests.process.emulated import PROCESS, emulate
from tests.process.stops import NO_FLOATING_POINT, agreeing, native, shown, taken, within, without_first_line
from tests.samples.catalogue import ABIS

SAMPLES = ("callback", "signals", "threads", "free_walk", "free_leaf")


@pytest.mark.parametrize("abi", [abi.name for abi in ABIS.values() if abi.emulator])
def test_stacks_are_those_of_gdb(abi: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arch = next(arch for arch in ARCHES if arch.name == abi)
    stops = [stop for stop in STOPS if stop.sample in SAMPLES and (abi, stop.name) != NO_FLOATING_POINT]
    compared = threads = 0
    for stop, executable, answer in taken(stops, abi, tmp_path, "O2"):
        core = answer[EMULATOR]
        emulate(monkeypatch, arch, Path(core["file"]), executable, sysroot(abi))
        roots = ("--sysroot", sysroot(abi)) if sysroot(abi) else ()
        done = backtrace("--pid", str(PROCESS), "--exe", executable, "--json", *roots, *NOWHERE)
        assert (done.status, done.errors) == (0, ""), f"{stop.name}: {done.errors}"
        found = {thread: list(map(shown, frames)) for thread, frames in done.threads.items()}
        expected = {thread: list(map(native, frames)) for thread, frames in core["threads"].items()}
        limit = agreeing(stop, expected)
        assert within(without_first_line(found), limit) == within(without_first_line(expected), limit), stop.name
        compared += 1
        threads = max(threads, len(found))
    assert compared >= (3 if ABIS[abi].has_libc else 1)
    assert threads > 1 or not ABIS[abi].has_libc
