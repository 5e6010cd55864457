"""One ELF file on disk: its loaded segments, sections, symbols and ``.debug_frame``."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from functools import cached_property
from typing import Literal, NamedTuple

from sframe_unwind.elf.file import opened
from sframe_unwind.elf.plt import stubs
from sframe_unwind.elf.reader import FileReader
from sframe_unwind.elf.symbols import Symbols, read_symbols
from sframe_unwind.errors import SFrameError
from sframe_unwind.image.build_id import find_build_id
from sframe_unwind.source.debug_info import DebugInfo

DEBUG_FRAME = ".debug_frame"
_DEBUG_LINK = ".gnu_debuglink"
_CHUNK = 1 << 20


class Load(NamedTuple):
    """A loadable segment."""

    address: int
    """``p_vaddr``: the address in the file, without the load bias."""
    offset: int
    """``p_offset``, in bytes."""
    size: int
    """``p_filesz``, in bytes."""


class ElfFile:
    """A linked ELF file.

    :raises FileError: the file cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._reader = FileReader(path)
        with opened(path) as elf:
            self.machine = elf["e_machine"], "little" if elf.little_endian else "big"
            segments = list(elf.iter_segments())
            self.loads = tuple(
                Load(segment["p_vaddr"], segment["p_offset"], segment["p_filesz"])
                for segment in segments
                if segment["p_type"] == "PT_LOAD"
            )
            notes = [segment.data() for segment in segments if segment["p_type"] == "PT_NOTE"]
            self.build_id = next(filter(None, (find_build_id(data, self.machine[1]) for data in notes)), "")
            kept = [section for section in elf.iter_sections() if section["sh_type"] != "SHT_NOBITS"]
            size = elf.stream.seek(0, os.SEEK_END)
            self.sections = {
                section.name: (section["sh_addr"], section["sh_size"]) for section in kept if section["sh_size"] <= size
            }
            """Address (without the load bias) and size in bytes of each section with contents."""
            self.has_symbol_table = any(section["sh_type"] == "SHT_SYMTAB" for section in kept)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes at a file offset; fewer at the end of the file."""
        return self._reader.read(offset, size)

    @cached_property
    def symbols(self) -> Symbols:
        """The symbols of the file; empty if they cannot be read."""
        try:
            return read_symbols(self.path)
        except SFrameError:
            return Symbols([])

    @cached_property
    def stubs(self) -> Symbols:
        """The stubs of the procedure linkage table; empty if they cannot be read."""
        try:
            with opened(self.path) as elf:
                return Symbols(stubs(elf))
        except SFrameError:
            return Symbols([])

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
        with suppress(SFrameError), opened(self.path) as elf:
            data = elf.get_section_by_name(_DEBUG_LINK).data()
            name = data.partition(b"\0")[0]
            at = len(name) + 4 & ~3  # behind a zero byte, and padded
            if name and b"/" not in name and at + 4 <= len(data):
                order: Literal["little", "big"] = "little" if elf.little_endian else "big"
                return os.fsdecode(name), int.from_bytes(data[at : at + 4], order)
        return None

    def crc32(self) -> int:
        """Return the CRC-32 of the whole file, as ``.gnu_debuglink`` has it."""
        found, offset = 0, 0
        while chunk := self.read(offset, _CHUNK):
            found, offset = zlib.crc32(chunk, found), offset + len(chunk)
        return found

    @cached_property
    def debug_frame(self) -> bytes:
        """The contents of ``.debug_frame``; empty: the file has none.

        :raises FileError: the section cannot be read.
        """
        if DEBUG_FRAME not in self.sections:
            return b""
        with opened(self.path) as elf:
            return bytes(elf.get_section_by_name(DEBUG_FRAME).data())
