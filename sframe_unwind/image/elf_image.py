"""An ELF image in the memory of a process: its segments and its SFrame section, from the program headers.

Section headers are not loaded into memory.  Reads are few and small, because the memory may be at the other end of a
slow remote connection.
"""

from __future__ import annotations

from contextlib import suppress

from sframe_unwind.address import ByteOrder, page_start
from sframe_unwind.elf.build_id import find_build_id
from sframe_unwind.elf.constants import PF_X, PT_GNU_SFRAME, PT_LOAD, PT_NOTE
from sframe_unwind.elf.records import HEADER_SIZE, ProgramHeader, decoded, file_header, layout
from sframe_unwind.errors import FileError, FormatError, MemoryReadError, SFrameError
from sframe_unwind.memory import ReadMemory, lazy_memory
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.section import Section

_MAX_NOTES = 1 << 16
_MAX_SEGMENTS = 512
_AT_ONCE = 1024
"""Bytes of the first read.  It includes the program headers, which usually follow the ELF header.  Each read can cost
one packet to a remote target."""


class Image(NamedTuple):
    """The program headers of a loaded ELF file."""

    bias: int
    """Load bias: address in the process minus address in the file."""
    segments: tuple[ProgramHeader, ...]
    """The segments with their addresses in the process."""

    def code_ranges(self) -> list[tuple[int, int]]:
        """Return start and end address (exclusive) of each executable segment."""
        return [(one.address, one.end) for one in self.segments if one.type == PT_LOAD and one.flags & PF_X]

    def sframe_section(self, read: ReadMemory) -> Section | None:
        """Open the SFrame section in memory; ``None``: the image has no ``PT_GNU_SFRAME`` segment.

        :raises FormatError: the section is malformed.
        :raises MemoryReadError: the section cannot be read.
        """
        for segment in self.segments:
            if segment.type == PT_GNU_SFRAME:
                data = lazy_memory(read, segment.address, segment.memory_size)
                return Section(data, segment.address, size_known=False)
        return None


def read_image(read: ReadMemory, address: int) -> Image:
    """Read the program headers of a 64-bit ELF image.

    :param address: address of the ELF header in the process.
    :raises FormatError: there is no 64-bit ELF header, or the program headers are malformed.
    :raises MemoryReadError: the program headers cannot be read.
    """
    start = _start(read, address)
    try:
        header = file_header(start)
    except FileError as error:
        raise FormatError(f"no 64-bit ELF image at {address:#x}: found {start[:6].hex()}") from error
    offset, size, count = header.phoff, header.phentsize, header.phnum
    if size != layout(ProgramHeader, header.byteorder).size or not 0 < count <= _MAX_SEGMENTS:
        raise FormatError(f"ELF image at {address:#x}: {count} program headers of {size} bytes")
    raw = start[offset : offset + size * count]
    if len(raw) < size * count:
        raw = read(address + offset, size * count)
    segments = list(decoded(ProgramHeader, raw, header.byteorder))
    loads = [(segment.address, segment.offset) for segment in segments if segment.type == PT_LOAD]
    if not loads:
        raise FormatError(f"ELF image at {address:#x}: no loadable segment")
    virtual, in_file = min(loads)
    # The ELF header is at file offset 0, which is the start of a page even if the first segment begins later.
    bias = address - (virtual - page_start(in_file))
    return Image(bias, tuple(segment._replace(address=segment.address + bias) for segment in segments))


def _start(read: ReadMemory, address: int) -> bytes:
    """Return the ELF header and what follows it; less of that where the first segment of a small file ends early."""
    with suppress(MemoryReadError):
        return read(address, _AT_ONCE)
    try:
        return read(address, HEADER_SIZE)
    except MemoryReadError as error:
        raise FormatError(f"no ELF image at {address:#x}: {error}") from error


def build_id_in(image: Image, read: ReadMemory, byteorder: ByteOrder) -> str:
    """Return the build ID of an image in memory in hexadecimal digits; empty: there is none, or it is unreadable."""
    for segment in image.segments:
        if segment.type == PT_NOTE:
            try:
                found = find_build_id(read(segment.address, min(segment.memory_size, _MAX_NOTES)), byteorder)
            except SFrameError:
                continue
            if found:
                return found
    return ""
