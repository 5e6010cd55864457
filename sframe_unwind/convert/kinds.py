"""The kinds of unwind data that a conversion reads."""

from __future__ import annotations

from typing import NamedTuple

DWARF, SFRAME, CODE, DWARF_AND_CODE = "dwarf", "sframe", "code", "dwarf,code"
SOURCES = (DWARF, SFRAME, CODE, DWARF_AND_CODE)
"""The kinds of unwind data; the last is DWARF CFI, and the machine code of functions that CFI does not describe."""
TITLES = {DWARF: "DWARF CFI", CODE: "the machine code", DWARF_AND_CODE: "DWARF CFI and the machine code"}


class Share(NamedTuple):
    """The part of a conversion's result that was made from one kind of unwind data."""

    kind: str
    """:data:`DWARF` or :data:`CODE`."""
    functions: int
    """Number of functions, or of their parts without a gap."""
    code_bytes: int
