"""Types that core files and running processes have in common."""

from __future__ import annotations

from collections.abc import Mapping

from sframe_unwind.named_tuple import NamedTuple

RegisterValues = Mapping[int, int]
"""The registers of a thread by DWARF number, including the pc."""


class Thread(NamedTuple):
    """A thread of a core file, or a stopped thread."""

    id: int
    """The kernel's id of the thread."""
    name: str
    """Empty: not known."""
    state: str
    """The signal that ended the process, as text; empty: none."""
    registers: RegisterValues
    not_stopped: str = ""
    """Why the thread was not stopped, with the source of its registers; empty: it was stopped."""


class FileMapping(NamedTuple):
    """A mapped part of a file."""

    start: int
    """Start address."""
    end: int
    """End address (exclusive)."""
    offset: int
    """File offset of ``start``, in bytes."""
    path: str
    link: str = ""
    """Opens the file that was mapped, wherever the path leads now; empty: there is only the path."""
