"""Compares stacks by the machine code of programs without unwind data with those of GDB by their CFI.

python -m lab.code.undescribed [--stops N] [--seed N] [--abi ABI]... [--variant V]... [--show]

Each program is stopped after random numbers of instructions, natively or in an emulator.  GDB's stack at a stop is by
the CFI; ours is that of `backtrace`, with a copy of the program from which unwind data was removed, and then symbols,
too.  Libraries keep their CFI.  A stop does not count if GDB's stack does not reach the program's entry point: in stubs
without CFI, GDB guesses.  A stack is *right* if all frames are GDB's, *short* if it ends early with GDB's frames, and
*wrong* otherwise.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sframe_unwind.address import lookup_address
from sframe_unwind.arch import ARCHES
from sframe_unwind.elf import opened
from sframe_unwind.perf.machines import dwarf_registers
from sframe_unwind.perf.sample import Sample
from sframe_unwind.perf.sample_memory import SampleMemory
from sframe_unwind.perf.spaces import Space
from sframe_unwind.process.base import Thread
from sframe_unwind.process.objects import Objects
from sframe_unwind.process.stacks import walk
from sframe_unwind.process.target import UnwoundThread
from sframe_unwind.unwind.code_match import CODE
from sframe_unwind.unwind.frame_pointer import NAME as GUESS
from sframe_unwind.unwind.walk import Frame
from tests.perf.emulated import Stepped, Steps, stepped
from tests.perf.unwinding import samples_of
from tests.samples.build import build
from tests.samples.catalogue import ABIS, SAMPLES
from tests.undescribed import undescribed
from tools.ending import exit_with

PROGRAMS = (
    *("leaf", "recursion", "dynamic", "noreturn", "sizes", "callback", "tail_inline", "realign", "stepper", "plt_now"),
    *("free_walk", "free_leaf"),
)
VARIANTS = ("O0", "O2")
_LONGEST_STEP = 60
"""Maximum number of instructions between two stops."""
RIGHT, SHORT, GUESSED, WRONG, BY_CODE = "right", "short", "guessed", "wrong", "by code"


class Case(NamedTuple):
    """A program in one build."""

    sample: str
    abi: str
    variant: str


def cases(abis: list[str], variants: list[str]) -> Iterator[Case]:
    """Yield the programs of some machines; those without a C library where the machine has none."""
    for abi in abis:
        for name in PROGRAMS:
            sample = SAMPLES[name]
            fits = abi in sample.abis and sample.freestanding != ABIS[abi].has_libc
            yield from (Case(name, abi, one) for one in variants if fits and one in sample.variants_for(abi))


def counted(case: Case, made: Stepped, with_symbols: bool, show: bool) -> Counter[str]:
    """Compare the stacks of one recording."""
    (arch,) = (one for one in ARCHES if one.name == case.abi)
    program = build(case.sample, case.abi, 3, case.variant)
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        root, path = Path(folder, "root"), Path(folder, "perf.data")
        undescribed(program, case.abi, root / str(program).lstrip("/"), with_symbols)
        path.write_bytes(made.recording)
        for (sample, space), expected in zip(samples_of(path, str(root)), made.stacks):
            if not _is_whole(expected, space, program):
                continue
            registers = dwarf_registers(arch, sample.registers)
            unwound = _stack(sample, space, registers)
            kind = _kind(unwound.frames, expected)
            found[kind] += 1
            found[BY_CODE] += sum(frame.unwinder == CODE for frame in unwound.frames)
            if show and kind != RIGHT:
                frames = [f"{frame.pc:#x} {frame.unwinder or '-'}" for frame in unwound.frames]
                print(f"  {kind} {case} {with_symbols=}: {frames}; GDB {[hex(pc) for pc in expected]}")
    return found


def _kind(frames: tuple[Frame, ...], expected: tuple[int, ...]) -> str:
    """Return how a stack compares with the expected pcs."""
    for inner, frame, pc in zip((None, *frames), frames, (*expected, *(None for _ in frames))):
        if frame.pc != pc:
            return GUESSED if inner is not None and inner.unwinder == GUESS else WRONG
    return RIGHT if len(frames) == len(expected) else SHORT


def _is_whole(stack: tuple[int, ...], space: Space, program: Path) -> bool:
    """Return whether a stack reaches the function at the entry point of its program."""
    file = space.find(stack[-1])
    if file is None or file.path != str(program):
        return False
    with opened(program) as binary:
        found = binary.symbols.find(lookup_address(stack[-1] - file.bias, len(stack) == 1))
        return found is not None and found[0].address == binary.entry_point


def _stack(sample: Sample, space: Space, registers: dict[int, int]) -> UnwoundThread:
    """Unwind a sample as ``backtrace`` unwinds a thread."""
    arch = space.sframe.arch
    memory = SampleMemory(space, registers[arch.sp], registers[arch.fp], sample.stack, arch.byteorder)
    objects = Objects(arch, [file.loaded for file in space.files], memory.read, print, space.is_code)
    return walk(Thread(1, "", "", registers), arch, objects, memory.read)


def main() -> int:
    """Print the table; the exit status is 1 if a stack is wrong."""
    parser = argparse.ArgumentParser(prog="python -m lab.code.undescribed", description=__doc__)
    parser.add_argument("--stops", type=int, default=10, help="of each program (default: 10)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--abi", choices=list(ABIS), action="append", help="default: all")
    parser.add_argument("--variant", choices=VARIANTS, action="append", help="default: all")
    parser.add_argument("--show", action="store_true", help="print each stack that is not right")
    options = parser.parse_args()
    chosen = list(cases(options.abi or list(ABIS), options.variant or list(VARIANTS)))
    print("| machine | symbols | programs | stops | right | short | guessed | wrong | frames by code |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    failed = False
    for abi in options.abi or list(ABIS):
        own = [case for case in chosen if case.abi == abi]
        numbers = random.Random(options.seed)
        every = {case: numbers.randrange(1, _LONGEST_STEP) for case in own}
        steps = {case: Steps(case.sample, "sample_stop", every=every[case], most=options.stops) for case in own}
        recordings = {case: stepped(steps[case], abi, case.variant) for case in own}
        for with_symbols in (True, False):
            found = sum(
                (counted(case, made, with_symbols, options.show) for case, made in recordings.items()), Counter()
            )
            kinds = (RIGHT, SHORT, GUESSED, WRONG)
            stops = sum(found[kind] for kind in kinds)
            counts = " | ".join(f"{found[kind]:,}" for kind in (*kinds, BY_CODE))
            print(f"| {abi} | {'yes' if with_symbols else 'no'} | {len(own)} | {stops:,} | {counts} |", flush=True)
            failed |= found[WRONG] > 0
    return int(failed)


if __name__ == "__main__":
    exit_with(main)
