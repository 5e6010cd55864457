"""One ELF file on disk: its loaded segments, sections, symbols and ``.debug_frame``."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from functools import cached_property

from sframe_unwind.address import PAGE_SIZE, page_start
from sframe_unwind.elf import ElfBinary, opened
from sframe_unwind.elf.cfi import DEBUG_FRAMES
from sframe_unwind.elf.constants import PT_LOAD
from sframe_unwind.elf.reader import FileReader
from sframe_unwind.elf.rewritten import rewriter
from sframe_unwind.elf.symbols import NearSymbols, Symbols
from sframe_unwind.errors import MemoryReadError, SFrameError
from sframe_unwind.source.debug_info import DebugInfo

_DEBUG_LINK = ".gnu_debuglink"
_CHUNK = 1 << 20


class ElfFile:
    """A linked ELF file.

    :raises FileError: the file cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._reader = FileReader(path)
        with opened(path) as binary:
            self.machine = binary.machine, binary.byteorder
            self.entry_point = binary.entry_point
            """``e_entry``: an address in the file; 0: there is none."""
            self.loads = tuple(segment for segment in binary.segments if segment.type == PT_LOAD)
            """The loadable segments."""
            self.build_id = binary.build_id
            kept = [section for section in binary.sections if section.has_contents]
            self.sections = {
                section.name: (section.address, section.size) for section in kept if section.size <= binary.size
            }
            """Address (without the load bias) and size in bytes of each section with contents."""
            self.has_symbol_table = binary.has_symbol_table

    @property
    def base(self) -> int:
        """The address in the file, without the load bias, that belongs to the offset 0 of the file."""
        first = min(self.loads, key=lambda load: (load.address, load.offset))
        return first.address - page_start(first.offset)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes at a file offset; fewer at the end of the file."""
        return self._reader.read(offset, size)

    def loaded(self, address: int, size: int, bias: int) -> bytes:
        """Return ``size`` bytes of a loadable segment.

        :param address: address in memory.
        :param bias: the load bias.
        :raises MemoryReadError: the file does not have them all.
        """
        at = address - bias
        for load in self.loads:
            # The pages with the start and the end of a segment are mapped as a whole.
            start, end = page_start(load.address), page_start(load.address + load.file_size + PAGE_SIZE - 1)
            if start <= at and at + size <= end:
                data = self.read(load.offset + at - load.address, size)
                if len(data) == size:
                    return data
        raise MemoryReadError(address, size)

    @cached_property
    def symbols(self) -> Symbols:
        """The symbols of the file; empty if they cannot be read."""
        try:
            with opened(self.path) as binary:
                # In an object file, all sections are at address 0, and addresses are ambiguous.
                return Symbols([]) if binary.is_object else binary.symbols
        except SFrameError:
            return Symbols([])

    @cached_property
    def names(self) -> Symbols | NearSymbols:
        """The symbols of the file, for the names of a few addresses; empty if they cannot be read."""
        with suppress(SFrameError), opened(self.path) as binary:
            if binary.has_symbol_table and not binary.is_object:
                return NearSymbols(binary, binary.layout)
        return self.symbols

    @cached_property
    def stubs(self) -> Symbols:
        """The stubs of the procedure linkage table; empty if they cannot be read."""
        try:
            with opened(self.path) as binary:
                return binary.stubs
        except SFrameError:
            return Symbols([])

    @property
    def rewriter(self) -> str:
        """What rewrote the code after linking; see :mod:`sframe_unwind.elf.rewritten`."""
        return rewriter({name: address for name, (address, _) in self.sections.items()})

    @cached_property
    def debug_info(self) -> DebugInfo | None:
        """The debug information of the file; ``None``: there is none, or it cannot be read."""
        try:
            found = DebugInfo(self.path)
        except SFrameError:
            return None
        return found if found.exists else None

    @cached_property
    def debug_link(self) -> tuple[str, int] | None:
        """Name and CRC-32 of the separate debug file, from ``.gnu_debuglink``; ``None``: the file names none."""
        if _DEBUG_LINK not in self.sections:
            return None
        with suppress(SFrameError), opened(self.path) as binary:
            data = _contents(binary, _DEBUG_LINK)
            name = data.partition(b"\0")[0]
            at = len(name) + 4 & ~3  # after a zero byte, and padded
            if name and b"/" not in name and at + 4 <= len(data):
                return os.fsdecode(name), int.from_bytes(data[at : at + 4], binary.byteorder)
        return None

    def crc32(self) -> int:
        """Return the CRC-32 of the whole file, in the form of ``.gnu_debuglink``."""
        found, offset = 0, 0
        while chunk := self.read(offset, _CHUNK):
            found, offset = zlib.crc32(chunk, found), offset + len(chunk)
        return found

    @cached_property
    def debug_frame(self) -> bytes:
        """The contents of ``.debug_frame``; empty: the file has none.

        :raises FileError: the section cannot be read.
        """
        name = next((name for name in DEBUG_FRAMES if name in self.sections), None)
        if name is None:
            return b""
        with opened(self.path) as binary:
            return _contents(binary, name)


def _contents(binary: ElfBinary, name: str) -> bytes:
    section = binary.named(name)
    return b"" if section is None else binary.contents(section)
