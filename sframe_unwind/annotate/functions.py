"""Chooses the functions of a file that lack CFI, and finds their rows by their machine code."""

from __future__ import annotations

from collections.abc import Sequence

from sframe_unwind.address import Range, gaps, merged, overlap
from sframe_unwind.annotate.directives import Placed, Writer
from sframe_unwind.code.decode.machines import MACHINES
from sframe_unwind.code.rows.function import Rows, RuleCounts, counted_rules
from sframe_unwind.code.rows.whole_file import FunctionRows
from sframe_unwind.convert.from_code import NO_TYPE, NOTHING_KNOWN, functions_by_code, known_functions, untyped_code
from sframe_unwind.elf import ElfBinary
from sframe_unwind.named_tuple import NamedTuple

HAS_CFI = "it has CFI already"
NOT_NAMED = "it is not among the functions that were named"


class Annotated(NamedTuple):
    """A function with the directives that it needs."""

    start: int
    end: int
    """Address after the last byte."""
    name: str
    """Empty: no symbol has its address."""
    instructions: Sequence[int]
    """The addresses of its instructions."""
    directives: list[Placed]
    """By ascending address; empty: none can be written, or none is needed."""
    why: str
    """Why there are no directives; empty: there are some."""
    gaps: list[Range]
    """The parts without directives, if it has some: there, the code does not tell where the frame is."""
    rules: RuleCounts

    @property
    def is_wanted(self) -> bool:
        """Whether it is among the functions that were named, if any were."""
        return self.why != NOT_NAMED

    @property
    def is_whole(self) -> bool:
        """Whether all of its code has directives or other CFI, or is not asked for."""
        return not self.gaps and self.why in ("", HAS_CFI, NOT_NAMED)


def annotated(binary: ElfBinary, wanted: Sequence[Range] | None = None) -> list[Annotated]:
    """Return the functions of a file, by address, with the directives that they need.

    :param wanted: the extents of the functions to annotate; ``None``: all.
    :raises MissingExtraError: the package that decodes the code is not installed.
    """
    machine, arch = MACHINES[binary.arch.name], binary.arch
    registers = tuple(sorted(machine.preserved - {arch.sp, arch.fp}))
    by_file = known_functions(binary)
    covered = merged(by_file)
    known = [*by_file, *(one for one in wanted or () if not overlap([one], covered))]
    covered = merged(known)
    without_size = (one for one in binary.symbols if not one.size and (one.is_function or one.is_global))
    starts = [one.address for one in without_size if not overlap([(one.address, one.address + 1)], covered)]
    functions = functions_by_code(binary, known, starts=starts, registers=registers, only=wanted)
    chooser = _Chooser(binary, Writer(arch, machine.directive_name), None if wanted is None else merged(wanted))
    found = [chooser.annotated(function) for function in functions]
    left = untyped_code(binary, merged((one.start, one.end) for one in found))
    return sorted([*found, *map(chooser.untyped, left)], key=lambda one: one.start)


class _Chooser:
    """Makes the directives of functions that need them.

    :param named: the code of the functions that the user has named; ``None``: all are wanted.
    """

    def __init__(self, binary: ElfBinary, writer: Writer, named: list[Range] | None) -> None:
        self._binary = binary
        self._writer = writer
        self._named = named
        self._described = merged(binary.cfi.ranges())

    def annotated(self, function: FunctionRows) -> Annotated:
        """Return a function with its directives."""
        start, end, exits = function.start, function.end, function.after_exits
        pieces = _from_start(function)
        why, missing = self._why_not(function, pieces), gaps((start, end), [(one.start, one.end) for one in pieces])
        return Annotated(
            start=start,
            end=end,
            name=self._binary.function_name(start),
            instructions=function.instructions,
            directives=[] if why else [placed for piece in pieces for placed in self._writer.placed(piece, exits)],
            why=why,
            gaps=[] if why else list(missing),
            rules=counted_rules(pieces),
        )

    def untyped(self, extent: Range) -> Annotated:
        """Return code that is left alone because its symbol has no type."""
        start, end = extent
        name = self._binary.function_name(start)
        why = f"{NO_TYPE}; name it to annotate it" if self._named is None else NOT_NAMED
        return Annotated(
            start=start, end=end, name=name, instructions=(), directives=[], why=why, gaps=[], rules=RuleCounts(0, 0)
        )

    def _why_not(self, function: FunctionRows, pieces: Sequence[Rows]) -> str:
        """Return why a function gets no directives; empty: it gets some."""
        extent = function.start, function.end
        if self._named is not None and not overlap([extent], self._named):
            return NOT_NAMED
        if overlap([extent], self._described):
            return HAS_CFI
        return "" if pieces else NOTHING_KNOWN


def _from_start(function: FunctionRows) -> list[Rows]:
    """Return the rows from the start of a function up to the first gap.

    Readers of CFI take the start of what a record describes for the start of a function.
    """
    found: list[Rows] = []
    for piece in function.pieces:
        if piece.start != (found[-1].end if found else function.start):
            break
        found.append(piece)
    return found
