"""One JIT image: an ELF file in memory with section headers that give the addresses of the running code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import CfiSection, SectionData
from sframe_unwind.errors import FileError, NoSFrameError, SFrameError
from sframe_unwind.memory import ReadMemory
from sframe_unwind.runtime_code.jit.stream import MemoryStream
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Module

if TYPE_CHECKING:
    from sframe_unwind.elf import ElfBinary

_EH_FRAME, _EH_FRAME_HDR = ".eh_frame", ".eh_frame_hdr"


class JitImage(Module):
    """An image with its ``.sframe``, ``.eh_frame`` and symbols."""

    def __init__(self, binary: ElfBinary, stream: MemoryStream, arch: Arch) -> None:
        self._binary = binary
        self._stream = stream
        self._arch = arch
        code = [(one.address, one.end) for one in binary.sections if one.is_loaded and one.is_code]
        super().__init__(binary.name, code, self._open, self._open_cfi)

    def unchanged(self) -> bool:
        """Return whether the memory that was read of the image has not changed."""
        return self._stream.unchanged()

    def run_time_name(self, pc: int) -> str:
        """Return the name of the symbol at an address; empty: there is none."""
        try:
            name = self._binary.symbols.name(pc) or ""
        except SFrameError:
            return ""
        return name.partition("+")[0]

    def _open(self) -> Section | None:
        try:
            found = self._binary.sframe
        except NoSFrameError:
            return None
        if len(found) > 1:
            raise FileError(f"{len(found)} SFrame sections, expected one")
        return found[0]

    def _open_cfi(self) -> CfiSection | None:
        binary = self._binary
        sections = {
            section.name: SectionData(section.address, binary.relocated(section))
            for section in binary.sections
            if section.name in (_EH_FRAME, _EH_FRAME_HDR) and section.has_contents
        }
        if _EH_FRAME not in sections:
            return None
        return CfiSection(sections[_EH_FRAME], sections.get(_EH_FRAME_HDR), self._arch)


def open_image(read: ReadMemory, address: int, size: int, arch: Arch) -> JitImage:
    """Open the ELF file of ``size`` bytes at an address.

    :raises FileError: there is no ELF file.
    :raises MemoryReadError: the memory cannot be read.
    """
    from sframe_unwind.elf import parsed  # not before there is an image: the plugins must load fast

    stream = MemoryStream(read, address, size)
    with parsed(stream, f"JIT image at {address:#x}", as_written=True) as binary:  # type: ignore[arg-type]  # it reads, seeks and tells
        return JitImage(binary, stream, arch)
