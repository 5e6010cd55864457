"""The rule for code that the section does not describe."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from sframe_unwind.address import gaps, merged
from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.findings import Finding
from sframe_unwind.lint.functions import Described
from sframe_unwind.lint.subject import Subject

_NAMED = 3
"""How many of the functions in one section of code are named."""
_PADDING = 64
"""Bytes without a symbol that can be there to align what follows: no producer aligns functions to more."""


def coverage_findings(subject: Subject, functions: Sequence[Described]) -> Iterator[Finding]:
    """Yield for each section of code what no FDE describes, but for what lies between functions to align them."""
    covered = merged((function.start, function.end) for function in functions if function.size)
    symbols = [symbol for symbol in subject.symbols if symbol.size]
    starts = [symbol.address for symbol in symbols]
    for start, end in subject.code:
        size, names = 0, []
        for low, high in gaps((start, end), covered):
            inside = range(bisect_left(starts, low), bisect_left(starts, high))
            if inside or high - low >= _PADDING:
                size += high - low
                names += [subject.name_of(starts[at]) for at in inside] or [subject.name_of(low)]
        if size:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            message = f"{size} of {end - start} bytes of code have no FDE: {', '.join(names[:_NAMED])}{more}"
            yield Finding(c.CODE_WITHOUT_FDE, message, None, start, names[0])
