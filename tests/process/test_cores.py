"""Core files of all samples, from each producer: the stacks equal those of GDB's own unwinders."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind import elf
from tests.expectations import STOPS, WITHOUT_CFI, matches
from tests.missing import core_files_needed, toolchain_needed
from tests.process.command import EMULATOR, GDB, KERNEL, NOWHERE, backtrace, functions
from tests.process.programs import core_of
from tests.process.stops import NO_FLOATING_POINT, agreeing, native, read, shown, taken, within, without_first_line
from tests.samples.build import build
from tests.samples.catalogue import ABIS

SIGNED = tuple(abi.name for abi in ABIS.values() if abi.signs)


@pytest.mark.parametrize("abi", ABIS)
def test_stacks_are_those_of_gdb(abi: str, tmp_path: Path) -> None:
    compared = dict.fromkeys((GDB, KERNEL, EMULATOR), 0)
    inlined = lines = 0
    for stop, executable, answer in taken(STOPS, abi, tmp_path, "O2"):
        for kind, core in answer.items():
            done = read(core["file"], executable, abi, kind)
            assert (done.status, done.errors) == (0, ""), f"{stop.name}: {done.errors}"
            found = {thread: list(map(shown, frames)) for thread, frames in done.threads.items()}
            if (abi, stop.name) == NO_FLOATING_POINT:
                # The CFI has the return address in f0.  The code still has it in r14, too.
                (stack,) = map(functions, done.threads.values())
                assert stack == ["busy_leaf", "around", "free_main", "_start"]
                continue
            expected = {thread: list(map(native, frames)) for thread, frames in core["threads"].items()}
            inlined += sum(frame.inlined for frames in expected.values() for frame in frames)
            lines += sum(frame.source[1] is not None for frames in expected.values() for frame in frames)
            limit = agreeing(stop, expected)
            found, expected = (within(without_first_line(stacks), limit) for stacks in (found, expected))
            assert {thread: len(frames) for thread, frames in found.items()} == {
                thread: len(frames) for thread, frames in expected.items()
            }, f"{stop.name}, {kind}"
            assert found == expected, f"{stop.name}, {kind}"
            compared[kind] += 1
    assert lines >= 8, lines
    assert inlined or not ABIS[abi].has_libc
    if ABIS[abi].emulator:
        assert compared[EMULATOR] >= (20 if ABIS[abi].has_libc else 3), compared
    else:
        assert compared[GDB] >= 25, compared
        core_files_needed()
        assert compared[KERNEL] == compared[GDB], compared


@pytest.mark.parametrize("abi", ABIS)
def test_stacks_are_complete_without_any_dwarf(abi: str, tmp_path: Path) -> None:
    checked = 0
    for stop, executable, answer in taken(WITHOUT_CFI, abi, tmp_path, "O2"):
        for kind, core in answer.items():
            done = read(core["file"], executable, abi, kind)
            (frames,) = done.threads.values()
            assert (done.status, done.errors) == (0, ""), f"{stop.name}: {done.errors}"
            assert matches(stop.frames, functions(frames)), f"{stop.name}: {functions(frames)}"
            own = [frame for frame in frames if (frame["module"] or "").endswith(executable.name)]
            assert {frame["unwinder"] for frame in own[: len(stop.frames) or len(own) - 1]} == {"sframe"}, stop.name
            assert '"end": "outermost frame"' in done.output
            checked += 1
    assert checked >= (3 if ABIS[abi].has_libc else 1)


@pytest.mark.parametrize("abi", SIGNED)
def test_stacks_are_complete_with_signed_return_addresses(abi: str, tmp_path: Path) -> None:
    stops = [stop for stop in STOPS if stop.sample in ("callback", "free_walk", "free_leaf", "threads")]
    for stop, executable, answer in taken(stops, abi, tmp_path, "pac"):
        done = read(answer[EMULATOR]["file"], executable, abi, EMULATOR)
        stacks = [functions(frames) for frames in done.threads.values()]
        for expected in (stop.frames, *stop.threads):
            assert any(matches(expected, stack) for stack in stacks), f"{stop.name}: {expected} not in {stacks}"
        assert done.output.count('"end": "outermost frame"') == len(stacks), done.output


def test_stub_is_named_as_gdb_names_it(tmp_path: Path) -> None:
    with toolchain_needed():
        program = build("plt", pie=False)
    with elf.opened(program) as binary:
        address = next(stub.address for stub in binary.stubs if stub.name == "shared_apply@plt")
    core, _ = core_of(program, f"*{address:#x}", tmp_path / "core")
    (frames,) = backtrace("--core", core, "--json", *NOWHERE).threads.values()
    assert functions(frames)[:2] == ["shared_apply@plt", "through_library"]
