"""Compares the stacks of all tasks in crash dumps with drgn's own unwinder.

    python -m lab.kernel.dumps --exe vmlinux vmcore...

drgn unwinds by ORC or DWARF CFI, and by frame pointers.  The exit status is 1 if a stack differs.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import drgn
from drgn.helpers.linux.pid import find_task, for_each_task

from lab.kernel.shown import PARTLY
from sframe_unwind.address import KERNEL_HALF
from sframe_unwind.kernel.unwinder import NAME as KERNEL
from sframe_unwind.process.drgn_kernel import DrgnKernel, open_dump
from sframe_unwind.process.stacks import named
from sframe_unwind.process.vmcore import VmcoreTarget
from sframe_unwind.report.stack import INLINED, Stack

ROUNDS = 5
TASKS = 200


class Compared(NamedTuple):
    """The stack of one task, by both unwinders."""

    stack: Stack
    drgn: tuple[tuple[int, str], ...]
    """Pc and function of each frame that is not inlined."""

    @property
    def own(self) -> tuple[tuple[int, str], ...]:
        """The same, by SFrame."""
        return tuple((frame.pc, frame.function) for frame in self.stack.frames if frame.unwinder != INLINED)

    @property
    def is_same(self) -> bool:
        """Whether all frames are equal.

        drgn continues with guesses in user space on AMD64, and on AArch64 if an exception is not saved yet.  On s390x,
        it continues in user space, and after the start of a task, where it takes empty registers for those of an
        exception.  On AArch64, it lacks the caller of a leaf function without CFI that was interrupted: it takes the
        return address of the frame record, which is that of the caller.
        """
        own = [pc for pc, _ in self.own]
        by_drgn = [pc for pc, _ in self.drgn]
        if self.stack.frames and self.stack.frames[0].unwinder == KERNEL and own[1:2] != by_drgn[1:2]:
            del own[1:2]
        if own and own[0] < KERNEL_HALF:  # s390x
            return own == by_drgn[: len(own)]
        by_drgn = list(itertools.takewhile(lambda pc: pc >= KERNEL_HALF, by_drgn))
        return own == (by_drgn[: len(own)] if self.stack.end == PARTLY else by_drgn)


def opened(dump: str, vmlinux: str) -> tuple[drgn.Program, VmcoreTarget]:
    """Open a dump by both unwinders."""
    program = open_dump(dump, vmlinux, ()).program
    return program, VmcoreTarget(dump, DrgnKernel(program), print)


def compared(program: drgn.Program, target: VmcoreTarget) -> list[Compared]:
    """Return the stacks of all tasks."""
    found = []
    for thread in target.threads:
        task = find_task(program, thread.id) if thread.id else program["init_task"].address_of_()
        frames = []
        if thread.registers:  # otherwise drgn raises LookupError
            frames = [(frame.pc, frame.name) for frame in program.stack_trace(task) if not frame.is_inline]
        found.append(Compared(named(target.unwind(thread), target.code), tuple(frames)))
    return found


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def times(dump: str, vmlinux: str) -> tuple[float, float]:
    """Return the medians of the seconds for 200 stacks with names and lines, by SFrame and by drgn.

    The time includes opening the dump.  If there are fewer tasks, their stacks are taken repeatedly.
    """

    def repeated(number: int) -> range:
        return range(-(-TASKS // number))

    def by_sframe() -> None:
        _, target = opened(dump, vmlinux)
        shown = [
            named(target.unwind(thread), target.code)
            for _ in repeated(len(target.threads))
            for thread in target.threads
        ]
        assert len(shown) >= TASKS

    def by_drgn() -> None:
        program = open_dump(dump, vmlinux, ()).program
        tasks = list(for_each_task(program))
        shown = [str(program.stack_trace(task)) for _ in repeated(len(tasks)) for task in tasks]
        assert len(shown) >= TASKS

    rounds = [(seconds(by_sframe), seconds(by_drgn)) for _ in range(ROUNDS)]
    own, other = zip(*rounds)
    return statistics.median(own), statistics.median(other)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the dumps; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exe", required=True)
    parser.add_argument("--times", action="store_true", help="measure, too")
    parser.add_argument("dumps", nargs="+")
    options = parser.parse_args(arguments)
    differ = 0
    for dump in options.dumps:
        stacks = compared(*opened(dump, options.exe))
        ends: dict[str, int] = {}
        for one in stacks:
            ends[one.stack.end] = ends.get(one.stack.end, 0) + 1
            if not one.is_same:
                differ += 1
                print(f"{dump}: {one.stack.title}: {one.stack.end}")
                for who, frames in (("sframe", one.own), ("drgn", one.drgn)):
                    print(f"  {who}: " + " ".join(f"{pc:#x}:{name}" for pc, name in frames))
        same = sum(one.is_same for one in stacks)
        print(f"{dump}: {same} of {len(stacks)} stacks equal drgn's; ends: {ends}")
        if options.times:
            own, other = times(dump, options.exe)
            print(f"{dump}: {TASKS} stacks: {own:.2f} s, drgn {other:.2f} s")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
