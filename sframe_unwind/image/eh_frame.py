"""Finds the ``.eh_frame`` section of an image in memory through its program headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sframe_unwind.arch import Arch
from sframe_unwind.elf.constants import PT_GNU_EH_FRAME, PT_LOAD
from sframe_unwind.image.elf_image import Image
from sframe_unwind.memory import ReadMemory, lazy_memory

if TYPE_CHECKING:
    from sframe_unwind.cfi.section import CfiSection


def eh_frame_in(image: Image, read: ReadMemory, arch: Arch) -> CfiSection | None:
    """Return the ``.eh_frame`` section of an image; ``None``: the image has no ``PT_GNU_EH_FRAME`` segment.

    That segment is the search table ``.eh_frame_hdr``, which holds the address of ``.eh_frame``.  An empty one is what
    objcopy leaves where it has removed the table.

    :raises FormatError: the search table is malformed.
    :raises MemoryReadError: the search table cannot be read.
    """
    # The decoder is loaded for the first CFI that is wanted, not at each start of a debugger.
    from sframe_unwind.cfi.index import Index
    from sframe_unwind.cfi.section import CfiSection, SectionData

    for segment in image.segments:
        if segment.type == PT_GNU_EH_FRAME and segment.memory_size:
            index = SectionData(segment.address, lazy_memory(read, segment.address, segment.memory_size))
            start = Index(index.data, index.address, arch.byteorder).frames
            ends = [one.end for one in image.segments if one.type == PT_LOAD and one.address <= start]
            frames = SectionData(start, lazy_memory(read, start, max(max(ends, default=start) - start, 0)))
            return CfiSection(frames, index, arch, size_known=False)
    return None
