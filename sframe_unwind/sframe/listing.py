"""The functions of whole sections with their rows, for uses that read all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sframe_unwind.errors import FormatError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.constants import PcType
from sframe_unwind.sframe.fre import most_rows
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Function
from sframe_unwind.unwind_rule import UnwindRule


class Malformed(NamedTuple):
    """A function whose FDE or rows cannot be decoded."""

    start: int
    """Address of the first byte."""
    end: int
    """End address (exclusive)."""
    reason: str


def listed_functions(sections: Iterable[Section], malformed: list[Malformed] | None = None) -> Iterator[Function]:
    """Yield all functions of sections.

    :param malformed: functions whose FDE is malformed are appended to it; ``None``: the first of them raises.
    :raises FormatError: an FDE is malformed, or too many claim the same rows: checking them would take time that grows
        with the square of the section's size.
    """
    for part in (part for section in sections for part in section.tables):
        rows, limit = 0, most_rows(part.header.fre_size, part.header.num_fdes)
        for number, (start, size) in enumerate(zip(*part.extents())):
            try:
                function = part.function_at(start, number)
            except FormatError as error:
                if malformed is None:
                    raise
                malformed.append(Malformed(start, start + size, str(error)))
                continue
            rows += function.fde.num_rows
            if rows > limit:
                raise FormatError(
                    f"function at {function.start:#x}: up to here there are {rows} rows, expected at most {limit}:"
                    " functions claim the same rows over and over"
                )
            yield function


def unrolled(function: Function, low: int, high: int) -> tuple[list[int], Sequence[UnwindRule | None]]:
    """Return offsets and rules of a function's rows; for a mask function, those of each block in a range.

    ``None`` is the rule of the bytes before a block's first row.
    """
    starts, rules = function.table.rows(function)
    if function.fde.pc_type is not PcType.MASK or not starts:
        return starts, rules
    size = function.fde.repetition_size
    low, high = low - function.start, high - function.start
    rows: list[tuple[int, UnwindRule | None]] = list(zip(starts, rules))
    if starts[0]:
        rows.insert(0, (0, None))
    unrolled = [(block + start, rule) for block in range(low - low % size, high, size) for start, rule in rows]
    return [start for start, _ in unrolled], [rule for _, rule in unrolled]
