"""Finds the functions of a file: those that are known, and those that known code calls."""

from __future__ import annotations

from collections.abc import Iterable

from sframe_unwind.address import Range, RangeMap
from sframe_unwind.code.image import CodeImage
from sframe_unwind.code.interpretation import Interpreter, Run, address_of
from sframe_unwind.code.lifting import Lifter
from sframe_unwind.code.machines import Machine
from sframe_unwind.code.ranges import CodeRange, CodeRanges

_MOST_FOUND = 1 << 20
"""Maximum number of functions that are found by following calls."""


def functions_of(image: CodeImage, machine: Machine, lifter: Lifter, known: Iterable[Range]) -> CodeRanges:
    """Return the functions of a file.

    A start is an address that is called, exported, pointed to, or where the program begins.  It counts only if it lies
    in no known function: code in the middle of one that is called belongs to that function.  A function that is found
    in this way ends with the last instruction that its code leads to.

    :param known: start and end address (exclusive) of the known functions.
    """
    known = [one for one in known if image.is_code(one[0])]
    known += [(plt.start, plt.end) for plt in image.plts]
    inside = RangeMap((start, end, None) for start, end in known)
    first = [*image.reachable, *((image.entry_point,) if image.entry_point is not None else ())]
    finder = _Finder(image, machine, lifter, inside)
    for start, end in known:
        finder.follow(CodeRange(start, end))
    for start in first:
        finder.add(start)
    return CodeRanges([*known, *finder.found()])


class _Finder:
    """Follows calls to code that belongs to no known function.

    :param inside: the known functions.
    """

    def __init__(self, image: CodeImage, machine: Machine, lifter: Lifter, inside: RangeMap[None]) -> None:
        self._image = image
        self._inside = inside
        self._starts: set[int] = set()
        self._waiting: list[int] = []
        self._interpreter = Interpreter(image, machine, lifter, CodeRanges([]), lambda _: ())

    def add(self, start: int) -> None:
        """Add a start, unless it lies in a known function."""
        is_new = start not in self._starts and len(self._starts) < _MOST_FOUND
        if is_new and self._image.is_code(start) and not self._inside.contains(start):
            self._starts.add(start)
            self._waiting.append(start)

    def follow(self, function: CodeRange) -> Run:
        """Add what a function calls, and return the run."""
        self._interpreter.ranges = CodeRanges([function])
        run = self._interpreter.run(function, {function.start: self._interpreter.frame.entry()})
        for target in run.called:
            self.add(target)
        return run

    def found(self) -> list[Range]:
        """Return the extents of the functions that were found."""
        while self._waiting:
            start = self._waiting.pop()
            self.follow(self._before_others(start))
        extents = []
        for start in sorted(self._starts):
            function = self._before_others(start)
            run = self.follow(function)
            extents.append((start, self._end(function, run)))
        return extents

    def _before_others(self, start: int) -> CodeRange:
        """Return the code from a start to the next function or the end of its section."""
        section = self._image.section(start)
        end = start if section is None else section.end
        others = [other for other in self._starts if start < other < end]
        others += [other for other, _, _ in self._inside.overlapping(start, end) if other > start]
        return CodeRange(start, min((end, *others)))

    def _end(self, function: CodeRange, run: Run) -> int:
        """Return the address after the last instruction that a run reaches in a function."""
        sweep, last = self._interpreter.sweep_at(function.start), function.start
        for block in run.states:
            pc = address_of(block)
            while function.start <= pc < function.end:
                instruction = sweep.instruction(pc)
                pc += instruction.size
                last = max(last, pc)
                if instruction.kind or not instruction.size:
                    break
        return last
