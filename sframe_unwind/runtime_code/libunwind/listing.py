"""libunwind's list of registrations (``_U_dyn_info_list``), read from memory that the process may be changing."""

from __future__ import annotations

from typing import Callable, NamedTuple

from sframe_unwind.errors import FormatError, MemoryReadError
from sframe_unwind.memory import ReadMemory
from sframe_unwind.runtime_code.libunwind.layout import Entry, Structures

MAX_ENTRIES = 200_000
"""Where reading ends at the latest."""
_VERSIONS = (0, 1)
"""libunwind leaves the field 0."""
_CHUNK_BITS = 12
_CHUNK = 1 << _CHUNK_BITS
"""One page.  Entries mostly lie close together, and thousands of small reads would take most of the time."""


class Head(NamedTuple):
    """``unw_dyn_info_list_t``."""

    version: int
    generation: int
    first: int


class Listing(NamedTuple):
    """The list at one time."""

    entries: list[tuple[int, int, int]]
    """Start address, end address, and the address of the entry itself."""
    settled: bool
    """``False``: the process was stopped while it changed the list, or the list is damaged.

    Then the same generation can mean another list the next time.
    """


def read_head(read: ReadMemory, structures: Structures, address: int) -> Head:
    """Read where a list begins.

    :raises FormatError: it is of an unknown version.
    :raises MemoryReadError: it cannot be read.
    """
    head = Head._make(structures.head.unpack(read(address, structures.head.size)))
    if head.version not in _VERSIONS:
        raise FormatError(f"libunwind's list at {address:#x} has version {head.version}, expected 0 or 1")
    return head


def read_entries(read: ReadMemory, structures: Structures, head: Head, report: Callable[[str], None]) -> Listing:
    """Read all entries.  What follows a damaged one cannot be found; what stands before it is good.

    :param report: takes one line about damage.
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
            what = "was there before" if address in seen else f"is more than {MAX_ENTRIES:,} entries behind the first"
            report(f"libunwind's list goes in a circle or never ends: the entry at {address:#x} {what}; it ends there")
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
                report(f"libunwind's list ends behind the entry at {previous:#x}: the next is dangling: {error}")
                return Listing(entries, False)
        following, before, start, end = unpack(data, offset)
        if before != previous:
            linked = False
        entries.append((start, end, address))
        previous, address = address, following
    # Each registration and each cancellation counts one generation, before the list is changed.
    return Listing(entries, linked and (head.generation - len(entries)) % 2 == 0)


def read_entry(read: ReadMemory, structures: Structures, address: int) -> Entry:
    """Read one entry.

    :raises MemoryReadError: it cannot be read.
    """
    return Entry(address, *structures.entry.unpack(read(address, structures.entry.size)))


def _chunk(read: ReadMemory, number: int) -> bytes:
    try:
        return read(number << _CHUNK_BITS, _CHUNK)
    except MemoryReadError:
        return b""  # part of it may be readable still
