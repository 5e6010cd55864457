"""Results of lookups in unwind info that a process registers at run time."""

from __future__ import annotations

from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import UnwindRule


class Procedure(NamedTuple):
    """A procedure that the process registered at run time."""

    start: int
    """Address of the first byte."""
    end: int
    """End address (exclusive)."""
    name: str
    """The registered name; empty: it has none."""
    described: str
    """Text with the kind and the address of the unwind info."""


class RunTimeMatch(NamedTuple):
    """A lookup result from run-time unwind info, like :class:`sframe_unwind.sframe.table.Match` from SFrame."""

    function: Procedure
    row_start: int
    """Offset from which the rule applies, in bytes from the start of the procedure."""
    rule: UnwindRule
