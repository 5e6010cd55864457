"""ELF files on disk: SFrame sections, relocations, symbols, CFI and archives.

:class:`ElfBinary` is one file; only :mod:`_reader` imports pyelftools, which decodes its headers.
"""

from sframe_unwind.elf._reader import ElfSection, ElfSegment, machine_number
from sframe_unwind.elf.binary import SECTION_NAME, ElfBinary, load, opened, parsed
from sframe_unwind.elf.reader import PathLike

__all__ = [
    "SECTION_NAME",
    "ElfBinary",
    "ElfSection",
    "ElfSegment",
    "PathLike",
    "load",
    "machine_number",
    "opened",
    "parsed",
]
