"""An ELF image in the memory of a process: its segments and its SFrame section, from the program headers.

pyelftools cannot do this: it starts from the section headers, which are not loaded into memory.  Reads are few and
small, because the memory may be at the other end of a slow remote connection.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import NamedTuple

from sframe_unwind.address import ByteOrder, page_start
from sframe_unwind.elf.build_id import find_build_id
from sframe_unwind.errors import FormatError, MemoryReadError, SFrameError
from sframe_unwind.memory import ReadMemory, lazy_memory
from sframe_unwind.sframe.section import Section

_PT_LOAD = 1
_PT_NOTE = 4
_MAX_NOTES = 1 << 16
_PT_GNU_SFRAME = 0x6474E554
_PF_X = 1
_HEADER_SIZE = 64
_SEGMENT_SIZE = 56
_MAX_SEGMENTS = 512
_AT_ONCE = 1024
"""Bytes of the first read.  It includes the program headers, which usually follow the ELF header.  Each read can cost
one packet to a remote target."""


class Segment(NamedTuple):
    """One program header."""

    kind: int
    """``p_type``"""
    flags: int
    """``p_flags``"""
    address: int
    """Address in the process."""
    size: int
    """``p_memsz``, in bytes."""


class Image(NamedTuple):
    """The program headers of a loaded ELF file."""

    bias: int
    """Load bias: address in the process minus address in the file."""
    segments: tuple[Segment, ...]

    def code_ranges(self) -> list[tuple[int, int]]:
        """Return start and end address (exclusive) of each executable segment."""
        return [(s.address, s.address + s.size) for s in self.segments if s.kind == _PT_LOAD and s.flags & _PF_X]

    def sframe_section(self, read: ReadMemory) -> Section | None:
        """Open the SFrame section in memory; ``None``: the image has no ``PT_GNU_SFRAME`` segment.

        :raises FormatError: the section is malformed.
        :raises MemoryReadError: the section cannot be read.
        """
        for segment in self.segments:
            if segment.kind == _PT_GNU_SFRAME:
                data = lazy_memory(read, segment.address, segment.size)
                return Section(data, segment.address, size_known=False)
        return None


def read_image(read: ReadMemory, address: int) -> Image:
    """Read the program headers of a 64-bit ELF image.

    :param address: address of the ELF header in the process.
    :raises FormatError: there is no 64-bit ELF header, or the program headers are malformed.
    :raises MemoryReadError: the program headers cannot be read.
    """
    header = _start(read, address)
    if header[:5] != b"\x7fELF\x02" or header[5] not in (1, 2):
        raise FormatError(f"no 64-bit ELF image at {address:#x}: found {header[:6].hex()}")
    mark = "<" if header[5] == 1 else ">"
    offset, size, count = (*struct.unpack_from(mark + "Q", header, 32), *struct.unpack_from(mark + "HH", header, 54))
    if size != _SEGMENT_SIZE or not 0 < count <= _MAX_SEGMENTS:
        raise FormatError(f"ELF image at {address:#x}: {count} program headers of {size} bytes")
    raw = header[offset : offset + size * count]
    if len(raw) < size * count:
        raw = read(address + offset, size * count)
    entries = list(struct.iter_unpack(mark + "IIQQQQQQ", raw))
    loads = [(entry[3], entry[2]) for entry in entries if entry[0] == _PT_LOAD]
    if not loads:
        raise FormatError(f"ELF image at {address:#x}: no loadable segment")
    virtual, in_file = min(loads)
    # The ELF header is at file offset 0, which is the start of a page even if the first segment begins later.
    bias = address - (virtual - page_start(in_file))
    segments = tuple(Segment(entry[0], entry[1], entry[3] + bias, entry[6]) for entry in entries)
    return Image(bias, segments)


def _start(read: ReadMemory, address: int) -> bytes:
    """Return the ELF header and what follows it; less of that where the first segment of a small file ends early."""
    with suppress(MemoryReadError):
        return read(address, _AT_ONCE)
    try:
        return read(address, _HEADER_SIZE)
    except MemoryReadError as error:
        raise FormatError(f"no ELF image at {address:#x}: {error}") from error


def build_id_in(image: Image, read: ReadMemory, byteorder: ByteOrder) -> str:
    """Return the build ID of an image in memory in hexadecimal digits; empty: there is none, or it is unreadable."""
    for segment in image.segments:
        if segment.kind == _PT_NOTE:
            try:
                found = find_build_id(read(segment.address, min(segment.size, _MAX_NOTES)), byteorder)
            except SFrameError:
                continue
            if found:
                return found
    return ""
