"""A program file in the memory of a process, and the comparison of its SFrame with its CFI."""

from __future__ import annotations

from pathlib import Path

from sframe_unwind import elf
from sframe_unwind.arch import BY_NAME
from sframe_unwind.cfi.section import CfiSection, SectionData
from sframe_unwind.debugger.module_agreement import ModuleAgreement
from sframe_unwind.elf.constants import SHF_EXECINSTR
from sframe_unwind.elf.rewritten import rewriter
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Module

AMD64 = BY_NAME["amd64"]
NEVER = float("inf")
"""A time limit that does not end."""


class File:
    """A file in the memory of a process, at the addresses for which it is linked."""

    def __init__(self, path: Path, with_cfi: bool = True) -> None:
        with elf.opened(path) as binary:
            parts = [part for part in binary.sections if part.address and part.has_contents]
            self._parts = {part.name: (part.address, binary.contents(part)) for part in parts}
            code = [(part.address, part.end) for part in parts if part.flags & SHF_EXECINSTR]
        address, data = self._parts[".sframe"]
        frames = SectionData(*self._parts[".eh_frame"]) if with_cfi and ".eh_frame" in self._parts else None
        index = SectionData(*self._parts[".eh_frame_hdr"]) if ".eh_frame_hdr" in self._parts else None
        cfi = CfiSection(frames, index, AMD64) if frames else None
        self.module = Module(
            path.name,
            code,
            lambda: Section(data, address),
            lambda: cfi,
            load_rewriter=lambda: rewriter({name: start for name, (start, _) in self._parts.items()}),
        )

    def read(self, address: int, size: int) -> bytes:
        """Return the bytes at an address; zeros between the sections."""
        found = bytearray(size)
        parts = [part for part in self._parts.values() if part[0] < address + size and address < part[0] + len(part[1])]
        for start, contents in parts:
            first, last = max(start, address), min(start + len(contents), address + size)
            found[first - address : last - address] = contents[first - start : last - start]
        if not parts:
            raise MemoryReadError(address, size)
        return bytes(found)

    def agreement(self) -> ModuleAgreement:
        """Return the comparison under test."""
        return ModuleAgreement(self.module, AMD64, self.read)
