"""What run-time unwind info says of one pc: the counterpart of :class:`sframe_unwind.sframe.table.Match`."""

from __future__ import annotations

from typing import NamedTuple

from sframe_unwind.unwind_rule import UnwindRule


class Procedure(NamedTuple):
    """The procedure that contains an address."""

    start: int
    end: int
    """Address behind its last byte."""
    name: str
    """As it was registered; empty where it has none."""
    described: str
    """What kind of unwind info there is, and where, in words."""


class RunTimeMatch(NamedTuple):
    """What was found for one pc."""

    function: Procedure
    row_start: int
    """Where the rule begins to hold, in bytes from the procedure's start."""
    rule: UnwindRule
