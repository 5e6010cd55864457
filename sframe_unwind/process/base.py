"""What a core file and a live process have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

Registers = Mapping[int, int]
"""The registers of a thread by their DWARF numbers; the pc is among them."""


class Thread(NamedTuple):
    """A thread that stands still."""

    id: int
    """As the system numbers it."""
    name: str
    """Empty where it is not known."""
    state: str
    """What happened to it, for people: the signal that it died of."""
    registers: Registers


class FileMapping(NamedTuple):
    """Part of a file in memory."""

    start: int
    end: int
    offset: int
    """Of ``start`` in the file, in bytes."""
    path: str
