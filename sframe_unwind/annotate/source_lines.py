"""The lines of assembly source from which instructions were assembled."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from sframe_unwind.address import ByteOrder
from sframe_unwind.annotate.data_lines import data_of
from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.constants import SHF_EXECINSTR
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.source.debug_info import DebugInfo


class Line(NamedTuple):
    """A line of source."""

    file: str
    """Path as the debug information has it."""
    number: int

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"


NO_LINE = Line("", 0)
"""Stands for a line that is not known."""


class Run(NamedTuple):
    """Consecutive instructions of one line."""

    line: Line
    addresses: list[int]

    @property
    def first(self) -> int:
        """Address of the first instruction."""
        return self.addresses[0]

    @property
    def last(self) -> int:
        """Address of the last instruction."""
        return self.addresses[-1]


ReadCode = Callable[[int, int], bytes]
"""``(address, size)``: returns the code there, less at the end of a section."""


def code_reader(binary: ElfBinary) -> ReadCode:
    """Return a function that reads the code of a file."""
    code = [section for section in binary.sections if section.flags & SHF_EXECINSTR]
    parts = [(binary.layout.addresses[section.number], binary.contents(section)) for section in code]

    def read(address: int, size: int) -> bytes:
        found = ((start, data) for start, data in parts if start <= address < start + len(data))
        return next((data[address - start : address - start + size] for start, data in found), b"")

    return read


class Code(NamedTuple):
    """The code whose lines are wanted."""

    addresses: Sequence[int]
    """Of all instructions, ascending."""
    read: ReadCode
    byteorder: ByteOrder


class InstructionLines:
    """The lines of the instructions of a file.

    :param lines_of: returns the lines of a source by its path in the debug information; empty: the source is not here.
    """

    def __init__(self, info: DebugInfo, code: Code, lines_of: Callable[[str], Sequence[str]]) -> None:
        self._code = code
        self._lines_of = lines_of
        self._runs: list[Run] = []
        plain = list(_runs(info, code.addresses))
        for number, run in enumerate(plain):
            following = next((other.line for other in plain[number + 1 :] if other.line != NO_LINE), NO_LINE)
            self._runs += self._divided(run, following)
        self._starts = [run.first for run in self._runs]
        self._times: dict[Line, int] = {}
        for run in self._runs:
            self._times[run.line] = self._times.get(run.line, 0) + 1

    def at(self, address: int) -> Run:
        """Return the instructions around one that have its line."""
        return self._runs[bisect_right(self._starts, address) - 1]

    def times(self, line: Line) -> int:
        """Return how many times a line was assembled; times without other instructions between them count once."""
        return self._times.get(line, 0)

    def _divided(self, run: Run, following: Line) -> Iterator[Run]:
        """Yield the parts of a run: instructions that later lines write as data belong to those lines.

        Assemblers give data no line, so the debug information has such instructions in the line of the last other one.

        :param following: the line of the next run.
        """
        known = following if run.line == NO_LINE else run.line
        waiting = run.addresses[run.line != NO_LINE :]
        if known == NO_LINE or not waiting:
            yield run
            return
        data = self._data_lines(known.file, run.line.number, following.number if following.file == known.file else None)
        begun: list[tuple[Line, int, int]] = []
        for number, contents in data:
            pairs = ((at, len(content)) for at in waiting for content in contents if self._is_at(at, content))
            at, size = next(pairs, (0, 0))
            if size:
                begun.append((Line(known.file, number), at, at + size))
                waiting = [one for one in waiting if one >= at + size]
        yield from _cut(run, begun)

    def _is_at(self, address: int, content: bytes) -> bool:
        return self._code.read(address, len(content)) == content

    def _data_lines(self, file: str, first: int, end: int | None) -> Iterator[tuple[int, list[bytes]]]:
        """Yield the number and the possible contents of each line in a range that writes data.

        :param first: the line before the range.
        :param end: the line after the range; ``None``: it ends with the file.
        """
        lines = self._lines_of(file)
        for number in range(first + 1, len(lines) + 1 if end is None else end):
            if contents := data_of(lines[number - 1], self._code.byteorder):
                yield number, contents


def _runs(info: DebugInfo, addresses: Iterable[int]) -> Iterator[Run]:
    current: Run | None = None
    for address in addresses:
        places = info.places(address)
        line = Line(places[0].file, places[0].line) if places and places[0].line else NO_LINE
        if current is not None and line == current.line:
            current.addresses.append(address)
            continue
        if current is not None:
            yield current
        current = Run(line, [address])
    if current is not None:
        yield current


def _cut(run: Run, parts: Sequence[tuple[Line, int, int]]) -> Iterator[Run]:
    """Yield the parts of a run that have other lines, and those between them, whose lines are not known.

    :param parts: the line, the start and the end address of each.
    """
    own, left = run.line, run.addresses
    for line, start, end in parts:
        before = [at for at in left if at < start]
        if before:
            yield Run(own, before)
        yield Run(line, [at for at in left if start <= at < end])
        own, left = NO_LINE, [at for at in left if at >= end]
    if left:
        yield Run(own, left)
