"""The rule for code that the section does not describe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.findings import Finding
from sframe_unwind.lint.functions import Described
from sframe_unwind.lint.subject import Subject
from sframe_unwind.lint.undescribed import undescribed

_NAMED = 3
"""Maximum number of functions that are named for one section of code."""


def coverage_findings(subject: Subject, functions: Sequence[Described]) -> Iterator[Finding]:
    """Yield for each section of code the parts that no FDE describes, except padding between functions."""
    for (start, end), found in undescribed(subject, functions):
        size, names = sum(one.end - one.start for one in found), [subject.name_of(one.start) for one in found]
        if size:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            message = f"{size} of {end - start} bytes of code have no FDE: {', '.join(names[:_NAMED])}{more}"
            yield Finding(c.CODE_WITHOUT_FDE, message, None, found[0].start, names[0])
