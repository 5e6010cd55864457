"""The rule for a section that a tool moved after linking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sframe_unwind.errors import SFrameError
from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.findings import Finding
from sframe_unwind.lint.functions import Described
from sframe_unwind.lint.subject import Subject
from sframe_unwind.sframe.displaced import displacement, told


def displaced_findings(subject: Subject, functions: Sequence[Described]) -> Iterator[Finding]:
    """Yield a finding if the functions of a linked file's section begin at one distance from those of the CFI."""
    if subject.is_object or subject.binary is None:
        return
    try:
        ranges = subject.binary.cfi.ranges()
    except SFrameError:
        return  # such CFI shows nothing
    distance = displacement((function.start for function in functions), ranges)
    if distance:
        yield Finding(c.CODE_REWRITTEN, told(distance))
