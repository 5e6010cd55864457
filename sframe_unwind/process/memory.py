"""The memory of a process, composed of the ranges that a core file saved and of the files that were mapped."""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import Callable

from sframe_unwind.errors import MemoryReadError
from sframe_unwind.named_tuple import NamedTuple

ReadRange = Callable[[int, int], bytes]
"""``(offset, size)``: returns up to ``size`` bytes at an offset in the range; fewer where bytes are missing."""

_BEYOND = 1 << 64


class _Range(NamedTuple):
    start: int
    end: int
    read: ReadRange


class _Layer:
    """Ranges of memory, sorted by address.  If two overlap, the later one takes precedence."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ranges: dict[int, _Range] = {}

    def add(self, start: int, end: int, read: ReadRange) -> None:
        if start < end and start not in self._ranges:
            insort(self._starts, start)
            self._ranges[start] = _Range(start, end, read)

    def find(self, address: int) -> tuple[_Range | None, int]:
        """Return the range that contains an address, or ``None``, and the start address of the next range."""
        at = bisect_right(self._starts, address)
        following = self._starts[at] if at < len(self._starts) else _BEYOND
        found = self._ranges[self._starts[at - 1]] if at else None
        return (found if found is not None and address < found.end else None), following


class Memory:
    """Reads memory from the saved ranges, and elsewhere from the mapped files."""

    def __init__(self) -> None:
        self._saved = _Layer()
        self._mapped = _Layer()

    def add_saved(self, start: int, end: int, read: ReadRange) -> None:
        """Add a range of saved memory.  The end address is exclusive."""
        self._saved.add(start, end, read)

    def add_mapped(self, start: int, end: int, read: ReadRange) -> None:
        """Add a mapped part of a file.  Pages that were not saved are unmodified and have the file's contents."""
        self._mapped.add(start, end, read)

    def read_saved(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes at an address, from saved ranges only.

        :raises MemoryReadError: not all of the bytes were saved.
        """
        found, _ = self._saved.find(address)
        data = found.read(address - found.start, min(size, found.end - address)) if found else b""
        if len(data) != size:
            raise MemoryReadError(address, size)
        return data

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes at an address.

        :raises MemoryReadError: not all of the bytes are available.
        """
        data = b""
        while len(data) < size:
            at = address + len(data)
            found, following = self._saved.find(at)
            if found is None:
                found, next_mapped = self._mapped.find(at)
                following = min(following, next_mapped)
            read = found.read(at - found.start, min(address + size, found.end, following) - at) if found else b""
            if not read:
                raise MemoryReadError(address, size)
            data += read
        return data
