"""One ELF file on disk: its loaded segments, sections, symbols and ``.debug_frame``."""

from __future__ import annotations

import os
from functools import cached_property
from typing import NamedTuple

from sframe_unwind.elf.file import opened
from sframe_unwind.elf.plt import stubs
from sframe_unwind.elf.reader import FileReader
from sframe_unwind.elf.symbols import Symbols, read_symbols
from sframe_unwind.errors import SFrameError
from sframe_unwind.image.build_id import find_build_id

DEBUG_FRAME = ".debug_frame"


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
    def debug_frame(self) -> bytes:
        """The contents of ``.debug_frame``; empty: the file has none.

        :raises FileError: the section cannot be read.
        """
        if DEBUG_FRAME not in self.sections:
            return b""
        with opened(self.path) as elf:
            return bytes(elf.named(DEBUG_FRAME).data())
