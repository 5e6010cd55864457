"""The executable and the shared libraries of a process: their unwind data, and the names of their functions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Callable, NamedTuple

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import CfiMatch, CfiSection, SectionData
from sframe_unwind.elf.symbols import Symbols
from sframe_unwind.errors import MemoryReadError, SFrameError
from sframe_unwind.image.build_id import find_build_id
from sframe_unwind.image.eh_frame import eh_frame_in
from sframe_unwind.image.elf_image import Image
from sframe_unwind.memory import ReadMemory, lazy_memory
from sframe_unwind.process.cfi import ObjectCfi
from sframe_unwind.process.elf_file import ElfFile
from sframe_unwind.process.files import Files
from sframe_unwind.runtime_code.file_symbols import finder
from sframe_unwind.runtime_code.opening import open_run_time_code
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Module, Modules

_PT_NOTE = 4
_MAX_NOTES = 1 << 16
FindFile = Callable[[], "ElfFile | None"]
FindCfi = Callable[[int], "CfiMatch | None"]
"""``(lookup address)``"""


class SymbolMatch(NamedTuple):
    """A function, and how far into it an address lies."""

    function: str
    offset: int


class LoadedObject:
    """One object in memory.

    What is in memory is used before what a file has; nothing is opened before somebody asks for it.

    :param name: its path.
    :param read: reads the memory of the process.
    :param find_file: finds the file that it comes from.
    """

    def __init__(
        self, name: str, image: Image, arch: Arch, read: ReadMemory, files: Files, find_file: FindFile
    ) -> None:
        self.name = name
        self.bias = image.bias
        self._image = image
        self._arch = arch
        self._read = read
        self._files = files
        self._find_file = find_file
        self.module = Module(name, image.code_ranges(), self._sframe)
        self.cfi = ObjectCfi(self._eh_frame, self._debug_frame, image.bias)

    @cached_property
    def file(self) -> ElfFile | None:
        """The file that it comes from, where that is found."""
        return self._find_file()

    @cached_property
    def _debug_file(self) -> ElfFile | None:
        return self._files.by_build_id(build_id_in(self._image, self._read, self._arch.byteorder))

    @cached_property
    def _symbols(self) -> Symbols:
        file, debug_file = self.file, None
        if file is None or not file.has_symbol_table:
            debug_file = self._debug_file
        found = debug_file or file
        return found.symbols if found else Symbols([])

    def function_at(self, pc: int) -> SymbolMatch | None:
        """Return the function that an address lies in, by the symbol tables."""
        found = self._symbols.find(pc - self.bias)
        return SymbolMatch(found[0].name, found[1]) if found else None

    def _section(self, name: str) -> SectionData | None:
        """Return a section in memory, by the section headers that only a file has."""
        if self.file is None or name not in self.file.sections:
            return None
        address, size = self.file.sections[name]
        return SectionData(address + self.bias, lazy_memory(self._read, address + self.bias, size))

    def _sframe(self) -> Section | None:
        try:
            found = self._image.sframe_section(self._read)
        except MemoryReadError:
            if self.file is not None:
                raise
            return None  # it was left to the file
        if found is None and (piece := self._section(".sframe")):
            found = Section(piece.data, piece.address)
        return found

    def _eh_frame(self) -> CfiSection | None:
        found = eh_frame_in(self._image, self._read, self._arch)
        if found is None and (piece := self._section(".eh_frame")):
            found = CfiSection(piece, None, self._arch)
        return found

    def _debug_frame(self) -> CfiSection | None:
        for file in (self.file, self._debug_file):
            if file is not None and file.debug_frame:
                return CfiSection(SectionData(0, file.debug_frame), None, self._arch, debug_frame=True)
        return None


class Objects:
    """All objects of a process, and the code that it registered at run time.

    :param read: reads the memory of the process.
    :param report: called once for each object whose SFrame data turns out unusable, with one line for the user.
    """

    def __init__(
        self, arch: Arch, objects: Sequence[LoadedObject], read: ReadMemory, report: Callable[[str], None]
    ) -> None:
        symbols = finder((found.file.path, found.bias) for found in objects if found.file is not None)
        self._run_time = open_run_time_code(arch, read, symbols, report)
        self.modules = Modules(arch, [found.module for found in objects], report, run_time=self._run_time)
        self._by_module = {found.module: found for found in objects}

    def find(self, pc: int) -> LoadedObject | None:
        """Return the object whose code contains an address."""
        module = self.modules.find(pc)
        return self._by_module.get(module) if module else None

    def run_time_name(self, pc: int) -> str:
        """Return what the code at an address was registered as; empty where it has a file, or no name."""
        return self._run_time.name(pc) if self._run_time is not None else ""

    def is_code(self, pc: int) -> bool:
        """Return whether an address lies in the code of some object."""
        return self.modules.find(pc) is not None

    def find_cfi(self, pc: int) -> CfiMatch | None:
        """Return what CFI says of an address; see :meth:`sframe_unwind.process.cfi.ObjectCfi.at`."""
        found = self.find(pc)
        try:
            return found.cfi.at(pc) if found else None
        except MemoryReadError:
            if found is None or found.file is not None:
                raise
            return None  # it was left to the file


def build_id_in(image: Image, read: ReadMemory, byteorder: str) -> str:
    """Return the build ID of an image in memory, in hex digits; empty where there is none or it cannot be read."""
    for segment in image.segments:
        if segment.kind == _PT_NOTE:
            try:
                found = find_build_id(read(segment.address, min(segment.size, _MAX_NOTES)), byteorder)
            except SFrameError:
                continue
            if found:
                return found
    return ""
