"""The loaded objects (executable and shared libraries) of a process: their unwind data and their symbols."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from io import BytesIO
from typing import Callable

from sframe_unwind.address import PAGE_SIZE, page_start
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import CfiMatch, CfiSection, PlacedCfi, SectionData
from sframe_unwind.elf import parsed
from sframe_unwind.elf.symbols import Symbols
from sframe_unwind.errors import FileError, MemoryReadError, SFrameError
from sframe_unwind.image.eh_frame import eh_frame_in
from sframe_unwind.image.elf_image import Image, build_id_in
from sframe_unwind.memory import ReadMemory, lazy_memory
from sframe_unwind.process.by_code import rows_of_file
from sframe_unwind.process.cfi import ObjectCfi
from sframe_unwind.process.dynamic_symbols import dynamic_symbols
from sframe_unwind.process.elf_file import ElfFile
from sframe_unwind.process.files import Files
from sframe_unwind.process.target import PlacedCode, SymbolMatch
from sframe_unwind.runtime_code.file_symbols import finder
from sframe_unwind.runtime_code.opening import open_run_time_code
from sframe_unwind.sframe.section import Section
from sframe_unwind.source.debug_info import DebugInfo, Place
from sframe_unwind.unwind.modules import Module, Modules
from sframe_unwind.unwind.precedence import Precedence

_MAX_VDSO_PAGES = 16
"""Maximum size of the vDSO in pages; it has 2 or 3."""
FindFile = Callable[[], "ElfFile | None"]


class LoadedObject:
    """One object in memory.

    Data in memory takes precedence over data in files.  Files and sections are opened on demand.

    :param name: path of the object.
    :param image: its image in memory.
    :param arch: architecture of the process.
    :param read: reads the memory of the process.
    :param files: finds the separate debug file.
    :param find_file: finds the file of the object.
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
        self.module = Module(name, image.code_ranges(), self._sframe, load_rewriter=self._rewriter)
        self.cfi = ObjectCfi(self._eh_frame, self._debug_frame)

    @cached_property
    def file(self) -> ElfFile | None:
        """The file of the object; ``None``: it was not found."""
        return self._find_file()

    @cached_property
    def _debug_file(self) -> ElfFile | None:
        return self._files.debug_file(self.file, self.build_id)

    @cached_property
    def _debug_info(self) -> DebugInfo | None:
        return self._files.debug_info(self.file, lambda: self._debug_file)

    def places(self, pc: int) -> list[Place]:
        """Return the source places of an address, see :class:`sframe_unwind.source.debug_info.DebugInfo`."""
        return self._debug_info.places(pc - self.bias) if self._debug_info is not None else []

    @property
    def lacks(self) -> str:
        """The data that its source places lack, and the reason, in one line; empty: nothing is known to be missing."""
        return self._debug_info.lacks if self._debug_info is not None else ""

    @cached_property
    def _symbol_file(self) -> ElfFile | None:
        """The file of the object, or if it has no symbol table, the separate debug file; ``None``: not found."""
        file, debug_file = self.file, None
        if file is None or not file.has_symbol_table:
            debug_file = self._debug_file
        return debug_file or file

    @cached_property
    def _symbols_in_memory(self) -> Symbols:
        if self.name.startswith("/"):
            return dynamic_symbols(self._image, self._read, self._arch.byteorder)
        return self._symbols_of_whole_image()

    def _symbols_of_whole_image(self) -> Symbols:
        """Return the symbols of an object that the kernel maps whole, section headers included: the vDSO."""
        start = min((segment.address for segment in self._image.segments), default=0)
        with suppress(SFrameError):
            content = b"".join(self._pages(page_start(start)))
            with parsed(BytesIO(content), self.name) as binary:
                return binary.symbols
        return Symbols([])

    def _pages(self, address: int) -> Iterator[bytes]:
        with suppress(MemoryReadError):
            for page in range(_MAX_VDSO_PAGES):
                yield self._read(address + page * PAGE_SIZE, PAGE_SIZE)

    @cached_property
    def code_rows(self) -> PlacedCode | None:
        """The rows that its machine code gives; ``None``: see :func:`sframe_unwind.process.by_code.rows_of_file`."""
        rows = rows_of_file(self.file, (self._symbol_file or self.file).symbols) if self.file is not None else None
        return None if rows is None else PlacedCode(rows, self.bias)

    @property
    def build_id(self) -> str:
        """The build ID of the loaded object in hexadecimal digits; empty: not known."""
        return build_id_in(self._image, self._read, self._arch.byteorder)

    @property
    def has_cfi(self) -> bool:
        """Whether there is any CFI."""
        try:
            return self.cfi.exists
        except SFrameError:
            return False

    def function_at(self, pc: int) -> SymbolMatch | None:
        """Return the function or stub that contains an address; ``None``: no symbol covers it."""
        address = pc - self.bias
        names = self._symbol_file.names if self._symbol_file is not None else self._symbols_in_memory
        found = None
        with suppress(FileError):  # the names are implausible
            found = names.find(address)
        if found is not None:
            return SymbolMatch(_unversioned(found[0].name), found[1])
        found = self.file.stubs.find(address) if self.file is not None else None
        return SymbolMatch(found[0].name, found[1]) if found else None

    def _section(self, name: str) -> SectionData | None:
        """Return a section in memory.  Its address comes from the file, since section headers are not in memory."""
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
            return None  # neither the core file nor a file has the section
        if found is None and (data := self._section(".sframe")):
            found = Section(data.data, data.address)
        return found

    def _rewriter(self) -> str:
        return self.file.rewriter if self.file is not None else ""

    def _eh_frame(self) -> CfiSection | None:
        found = eh_frame_in(self._image, self._read, self._arch)
        if found is None and (data := self._section(".eh_frame")):
            found = CfiSection(data, None, self._arch)
        return found

    def _debug_frame(self) -> PlacedCfi | None:
        file = self.file
        if file is None or not file.debug_frame:
            file = self._debug_file
        if file is None or not file.debug_frame:
            return None
        section = CfiSection(SectionData(0, file.debug_frame), None, self._arch, debug_frame=True)
        return PlacedCfi(section, self.bias)


class Objects:
    """All loaded objects of a process, and its run-time code: a :class:`sframe_unwind.process.target.Code`.

    :param read: reads the memory of the process.
    :param report: called with one line for the user, once for each object with unusable SFrame data.
    :param is_executable: returns whether memory at an address can be executed.
    :param name: returns the name of run-time code at an address that is not registered; empty: not known.
    """

    def __init__(
        self,
        arch: Arch,
        objects: Sequence[LoadedObject],
        read: ReadMemory,
        report: Callable[[str], None],
        is_executable: Callable[[int], bool],
        name: Callable[[int], str] = lambda _: "",
    ) -> None:
        self._is_executable = is_executable
        self._name = name
        symbols = finder((found.file.path, found.bias) for found in objects if found.file is not None)
        self._run_time = open_run_time_code(arch, read, symbols, report)
        self.modules = Modules(arch, [found.module for found in objects], report, run_time=self._run_time, read=read)
        self._by_module = {found.module: found for found in objects}
        self._precedence = Precedence(self.modules, self.find_cfi, evaluates=False)
        self.all = tuple(objects)

    def find(self, pc: int) -> LoadedObject | None:
        """Return the object that contains the code at an address, or ``None``."""
        module = self.modules.find(pc)
        return self._by_module.get(module) if module else None

    def run_time_name(self, pc: int) -> str:
        """Return the name of the run-time code at an address; empty: there is none."""
        registered = self._run_time.name(pc) if self._run_time is not None else ""
        return registered or ("" if self.modules.find(pc) is not None else self._name(pc))

    def is_code(self, pc: int) -> bool:
        """Return whether an address is in the code of a loaded object, or in other code, such as generated code."""
        return self.modules.find(pc) is not None or self._is_executable(pc)

    def may_be_trampoline(self, pc: int) -> bool:  # noqa: ARG002  # it is found by reading memory, which is cheap
        """Return ``True``: the code at an address can be a signal trampoline."""
        return True

    def prefers_cfi(self, pc: int) -> bool:
        """Return whether to pass over SFrame's rule for a lookup address; decided once for all threads."""
        return self._precedence.prefers_cfi(pc)

    def code_rows(self, pc: int) -> PlacedCode | None:
        """Return the rows that the machine code at a lookup address gives; ``None``: it gives none."""
        found = self.find(pc)
        return None if found is None else found.code_rows

    def why_no_data(self, pc: int) -> str:
        """Return why there is no unwind data for a lookup address; empty: nothing more is known."""
        found = self.find(pc)
        if found is not None and found.name.startswith("/") and found.file is None:
            return f"{found.name} is not found"
        if found is not None and found.has_cfi:
            return f"neither SFrame nor the CFI of {found.name} has the address"
        return ""

    def find_cfi(self, pc: int) -> CfiMatch | None:
        """Return the CFI for an address; see :meth:`sframe_unwind.process.cfi.ObjectCfi.at`."""
        module = self.modules.find(pc)
        found = self._by_module.get(module) if module else None
        try:
            if found is None:
                return module.cfi_match(pc) if module else None  # a JIT image
            return found.cfi.at(pc)
        except MemoryReadError:
            if found is None or found.file is not None:
                raise
            return None  # neither the core file nor a file has the section


def _unversioned(symbol: str) -> str:
    """Return the name of a symbol without its version, such as ``@GLIBC_2.2.5``."""
    return symbol.partition("@")[0] or symbol
