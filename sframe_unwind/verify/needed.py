"""Chooses the functions to check against the code if only some functions of a file are wanted."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence

from sframe_unwind.address import Range
from sframe_unwind.code.judge.checking import Checker
from sframe_unwind.elf import ElfBinary

_MOST_CALLED = 256
"""Maximum number of functions that are checked to learn how they return, apart from the wanted ones."""
_SPLIT_OFF = (".cold", ".part")
"""Suffixes of the names that compilers give to parts that they split off a function."""


def chosen(checker: Checker, wanted: Sequence[Range]) -> list[int]:
    """Return the numbers of the functions of a file that overlap some ranges, ascending."""
    ranges = checker.interpreter.ranges
    found: set[int] = set()
    for start, end in wanted:
        first, last = bisect_left(ranges.starts, start), bisect_left(ranges.starts, end)
        found.update(range(first, last))
        if first and ranges[first - 1].end > start:
            found.add(first - 1)
    return sorted(found)


def needed(checker: Checker, binary: ElfBinary, wanted: Sequence[Range]) -> list[int]:
    """Return the numbers of the functions to check, ascending: the wanted ones, and those on which they depend.

    They depend on the called functions, which may not return, and on the function of which a compiler split off a part.

    :param wanted: start and end address of each wanted function.
    """
    ranges, sweeps = checker.interpreter.ranges, checker.interpreter.sweeps
    found = set(chosen(checker, wanted))
    waiting = deque(sorted(found))

    def add(address: int) -> None:
        part = ranges.find(address)
        if part is not None and (number := bisect_left(ranges.starts, part.start)) not in found:
            found.add(number)
            waiting.append(number)

    for start, _ in wanted:
        name = binary.function_name(start)
        for suffix in _SPLIT_OFF:
            if suffix in name:
                for address in binary.symbols.addresses(name.partition(suffix)[0]):
                    add(address)
    most = len(found) + _MOST_CALLED
    while waiting and len(found) < most:
        for _, target in sweeps.sweep(ranges[waiting.popleft()]).calls():
            add(target)
    return sorted(found)
