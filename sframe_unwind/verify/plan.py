"""What files are verified against."""

from __future__ import annotations

from typing import NamedTuple

from sframe_unwind.workers import Progress


class Plan(NamedTuple):
    """What files are verified against."""

    dwarf: bool = True
    """SFrame against DWARF CFI."""
    code: bool = False
    """Either, or both, against the machine code: a file may then lack one of them."""
    why_unknown: bool = False
    """Find out since which instruction it is unknown whether a rule is right."""
    jobs: int = 1
    """How many processes interpret the code of one file."""
    progress: Progress | None = None
