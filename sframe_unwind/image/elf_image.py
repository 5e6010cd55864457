"""An ELF image in the memory of a process: its SFrame section by the program headers, without any file.

This reads the few bytes that it needs from memory that may be a slow remote connection; the section headers that
pyelftools starts from are not loaded into memory at all.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from sframe_unwind.address import page_start
from sframe_unwind.errors import FormatError, MemoryReadError
from sframe_unwind.memory import ReadMemory, lazy_memory
from sframe_unwind.sframe.section import Section

_PT_LOAD = 1
_PT_GNU_SFRAME = 0x6474E554
_PF_X = 1
_HEADER_SIZE = 64
_SEGMENT_SIZE = 56
_MAX_SEGMENTS = 512
_AT_ONCE = 1024
"""Read together: the header, and the program headers that mostly follow it.  A read can be a remote packet."""


class Segment(NamedTuple):
    """One program header; addresses are those of the process."""

    kind: int
    flags: int
    address: int
    size: int


class Image(NamedTuple):
    """What the program headers of a loaded file say."""

    bias: int
    """What to add to an address in the file to get the one in the process."""
    segments: tuple[Segment, ...]

    def code_ranges(self) -> list[tuple[int, int]]:
        """Return start and end addresses of the executable segments."""
        return [(s.address, s.address + s.size) for s in self.segments if s.kind == _PT_LOAD and s.flags & _PF_X]

    def sframe_section(self, read: ReadMemory) -> Section | None:
        """Open the SFrame section in memory; ``None`` where the image has none.

        :raises FormatError: it is malformed.
        :raises MemoryReadError: it cannot be read.
        """
        for segment in self.segments:
            if segment.kind == _PT_GNU_SFRAME:
                data = lazy_memory(read, segment.address, segment.size)
                return Section(data, segment.address, size_known=False)
        return None


def read_image(read: ReadMemory, address: int) -> Image:
    """Read the program headers of the 64-bit ELF image whose header is at an address.

    :raises FormatError: there is no such image.
    :raises MemoryReadError: the memory cannot be read.
    """
    try:
        header = read(address, _AT_ONCE)
    except MemoryReadError as error:
        raise FormatError(f"no ELF image at {address:#x}: {error}") from error
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
    # The header is the file's first byte, wherever in its page the first segment begins.
    bias = address - (virtual - page_start(in_file))
    segments = tuple(Segment(entry[0], entry[1], entry[3] + bias, entry[6]) for entry in entries)
    return Image(bias, segments)
