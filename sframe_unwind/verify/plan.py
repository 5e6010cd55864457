"""Settings of a verification: the data with which a file is compared."""

from __future__ import annotations

from sframe_unwind.address import Range
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.workers import Progress


class Plan(NamedTuple):
    """Settings of a verification: the data with which a file is compared."""

    dwarf: bool = True
    """Compare SFrame with DWARF CFI."""
    code: bool = False
    """Compare either or both with the machine code: a file may then lack one of them."""
    orc: bool = False
    """Compare ORC with SFrame, or with DWARF CFI if there is no SFrame."""
    why_unknown: bool = False
    """Find the instruction after which it is unknown whether a rule is right."""
    jobs: int = 1
    """Number of processes that interpret the code of one file."""
    progress: Progress | None = None
    only: tuple[Range, ...] | None = None
    """The functions to report, by the start and end addresses; ``None``: all."""
    listing: bool = True
    """List the functions of files whose tables are not compared with each other, and name all functions, also those
    that agree, as pages and surveys do."""
