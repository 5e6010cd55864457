"""One JIT image: an ELF file in memory with section headers that give the addresses of the running code.

The imports that need pyelftools are inside the functions, because a debugger's Python may lack it.
"""

from __future__ import annotations

from typing import Any

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import CfiSection, SectionData
from sframe_unwind.errors import FileError, NoSFrameError, SFrameError
from sframe_unwind.memory import ReadMemory
from sframe_unwind.runtime_code.jit.stream import MemoryStream
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Module


class JitImage(Module):
    """An image with its ``.sframe``, ``.eh_frame`` and symbols."""

    def __init__(self, name: str, elf: Any, stream: MemoryStream, arch: Arch) -> None:
        self._elf = elf
        self._stream = stream
        self._arch = arch
        self._named: Any = None
        super().__init__(name, _code_ranges(elf), self._open, self._open_cfi)

    def unchanged(self) -> bool:
        """Return whether the memory that was read of the image has not changed."""
        return self._stream.unchanged()

    def run_time_name(self, pc: int) -> str:
        """Return the name of the symbol at an address; empty: there is none."""
        from sframe_unwind.elf.symbols import Symbols, symbols_of

        if self._named is None:
            try:
                self._named = symbols_of(self._elf, self._layout())
            except SFrameError:
                self._named = Symbols([])
        return str(self._named.name(pc) or "").partition("+")[0]

    def _layout(self) -> Any:
        """Return the section addresses from the section headers, since :class:`Layout` would assign others."""
        from sframe_unwind.elf.section_addresses import Layout

        layout = Layout(self._elf)
        layout.addresses = [section["sh_addr"] for section in self._elf.iter_sections()]
        return layout

    def _open(self) -> Section | None:
        from sframe_unwind.elf.file import load_from

        try:
            found = load_from(self._elf, None, self._layout())
        except NoSFrameError:
            return None
        if len(found) > 1:
            raise FileError(f"{len(found)} SFrame sections, expected one")
        return found[0]

    def _open_cfi(self) -> CfiSection | None:
        sections = {
            section.name: SectionData(section["sh_addr"], section.data())
            for section in self._elf.iter_sections()
            if section.name in (".eh_frame", ".eh_frame_hdr") and section["sh_type"] != "SHT_NOBITS"
        }
        if ".eh_frame" not in sections:
            return None
        return CfiSection(sections[".eh_frame"], sections.get(".eh_frame_hdr"), self._arch)


def _code_ranges(elf: Any) -> list[tuple[int, int]]:
    from elftools.elf.constants import SH_FLAGS

    wanted = SH_FLAGS.SHF_ALLOC | SH_FLAGS.SHF_EXECINSTR
    return [
        (section["sh_addr"], section["sh_addr"] + section["sh_size"])
        for section in elf.iter_sections()
        if section["sh_flags"] & wanted == wanted
    ]


def open_image(read: ReadMemory, address: int, size: int, arch: Arch) -> JitImage:
    """Open the ELF file of ``size`` bytes at an address.

    :raises FileError: there is no ELF file, or pyelftools is not installed.
    :raises MemoryReadError: the memory cannot be read.
    """
    try:
        from sframe_unwind.elf.file import parsed
    except ImportError as error:
        raise FileError("reading it needs pyelftools, which this Python lacks") from error
    stream = MemoryStream(read, address, size)
    name = f"JIT image at {address:#x}"
    with parsed(stream, name) as elf:  # type: ignore[arg-type]  # pyelftools reads, seeks and tells
        return JitImage(name, elf, stream, arch)
