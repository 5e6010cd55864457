"""One ELF file on disk: what of it is loaded where, and what it has for unwinding."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from sframe_unwind.elf.file import opened
from sframe_unwind.elf.reader import FileReader
from sframe_unwind.elf.symbols import Symbols, read_symbols
from sframe_unwind.errors import SFrameError
from sframe_unwind.image.build_id import find_build_id

DEBUG_FRAME = ".debug_frame"


class Load(NamedTuple):
    """A part of the file that is loaded."""

    address: int
    """In the terms of the file."""
    offset: int
    size: int
    """Of what the file has of it, in bytes."""


class ElfFile:
    """Headers of a linked ELF file.

    :raises FileError: it cannot be read.
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
            self.sections = {section.name: (section["sh_addr"], section["sh_size"]) for section in kept}
            """Address and size of each section with contents, in the terms of the file."""
            self.has_symbol_table = any(section["sh_type"] == "SHT_SYMTAB" for section in kept)

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of the file, as far as it has them."""
        return self._reader.read(offset, size)

    @cached_property
    def symbols(self) -> Symbols:
        """The names of its functions; none where they cannot be read."""
        try:
            return read_symbols(self.path)
        except SFrameError:
            return Symbols([])

    @cached_property
    def debug_frame(self) -> bytes:
        """The contents of ``.debug_frame``; empty where there is none.

        :raises FileError: it cannot be read.
        """
        if DEBUG_FRAME not in self.sections:
            return b""
        with opened(self.path) as elf:
            return bytes(elf.get_section_by_name(DEBUG_FRAME).data())
