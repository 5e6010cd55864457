"""The settings of the unwinder: which frames it claims."""

from __future__ import annotations

from typing import NamedTuple

ALWAYS, FALLBACK, OFF = "always", "fallback", "off"
MODES = (ALWAYS, FALLBACK, OFF)


class Settings(NamedTuple):
    """What ``set sframe`` has set."""

    mode: str = ALWAYS
    strict: bool = False
    """In mode ``always``: also claim frames for which GDB's own unwinder gives the same caller."""
