"""Reads libunwind's list of registrations (``_U_dyn_info_list``).

The process may have been stopped while it was changing the list.
"""

from __future__ import annotations

from typing import Callable

from sframe_unwind.errors import FormatError, MemoryReadError
from sframe_unwind.memory import ReadMemory
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.runtime_code.libunwind.layout import Entry, Structures

MAX_ENTRIES = 200_000
"""Maximum number of entries; a longer list counts as damaged."""
_VERSIONS = (0, 1)
"""Accepted versions.  libunwind itself writes 0."""
_CHUNK_BITS = 12
_CHUNK = 1 << _CHUNK_BITS
"""Bytes that one read fetches.  Entries are usually close together, and a read per entry would be slow."""


class Head(NamedTuple):
    """``unw_dyn_info_list_t``."""

    version: int
    generation: int
    first: int


class Listing(NamedTuple):
    """The list at one time."""

    entries: list[tuple[int, int, int]]
    """Start address, end address (exclusive) and address of each entry."""
    settled: bool
    """``False``: the process was stopped while it was changing the list, or the list is damaged.

    The list must then be read again even if its generation stays the same.
    """


def read_head(read: ReadMemory, structures: Structures, address: int) -> Head:
    """Read the head of a list.

    :param address: address of the list.
    :raises FormatError: the version of the list is unknown.
    :raises MemoryReadError: the head cannot be read.
    """
    head = Head._make(structures.head.unpack(read(address, structures.head.size)))
    if head.version not in _VERSIONS:
        raise FormatError(f"libunwind's list at {address:#x} has version {head.version}, expected 0 or 1")
    return head


def read_entries(read: ReadMemory, structures: Structures, head: Head, report: Callable[[str], None]) -> Listing:
    """Read all entries.  After a damaged entry, the listing ends; the entries before it are valid.

    :param report: called with one line if the list is damaged.
    """
    unpack, size = structures.links.unpack_from, structures.links.size
    entries: list[tuple[int, int, int]] = []
    seen: set[int] = set()
    chunks: dict[int, bytes] = {}
    known = chunks.get
    linked = True
    previous, address = 0, head.first
    while address:
        if address in seen or len(entries) == MAX_ENTRIES:
            what = "was there before" if address in seen else f"is more than {MAX_ENTRIES:,} entries after the first"
            report(f"libunwind's list is circular or too long: the entry at {address:#x} {what}; the rest is ignored")
            return Listing(entries, False)
        seen.add(address)
        number, offset = address >> _CHUNK_BITS, address & _CHUNK - 1
        data = known(number)
        if data is None:
            data = chunks[number] = _chunk(read, number)
        if offset + size > len(data):
            try:
                data, offset = read(address, size), 0
            except MemoryReadError as error:
                report(f"libunwind's list ends after the entry at {previous:#x}: the next is unreadable: {error}")
                return Listing(entries, False)
        following, before, start, end = unpack(data, offset)
        if before != previous:
            linked = False
        entries.append((start, end, address))
        previous, address = address, following
    # libunwind increments the generation at each registration and each cancellation, before it changes the list.
    return Listing(entries, linked and (head.generation - len(entries)) % 2 == 0)


def read_entry(read: ReadMemory, structures: Structures, address: int) -> Entry:
    """Read the entry at an address.

    :raises MemoryReadError: the entry cannot be read.
    """
    return Entry(address, *structures.entry.unpack(read(address, structures.entry.size)))


def _chunk(read: ReadMemory, number: int) -> bytes:
    try:
        return read(number << _CHUNK_BITS, _CHUNK)
    except MemoryReadError:
        return b""  # a part of the chunk may still be readable
