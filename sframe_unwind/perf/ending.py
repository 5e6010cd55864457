"""The ways in which the stack of a sample ends."""

from __future__ import annotations

from enum import Enum


class Ending(Enum):
    """The way in which a stack ends."""

    REACHED = "reached"
    """It reaches the start of the thread."""
    CUT = "cut"
    """The caller is in the part of the stack that was not copied."""
    FAILED = "failed"
