"""ELF files on disk: SFrame sections, relocations, symbols, CFI and archives."""

from sframe_unwind.elf.constants import PT_GNU_SFRAME, SHT_GNU_SFRAME
from sframe_unwind.elf.file import (
    SECTION_NAME,
    PathLike,
    arch_of,
    load,
    load_from,
    opened,
    parsed,
    sframe_sections,
)

__all__ = [
    "PT_GNU_SFRAME",
    "SECTION_NAME",
    "SHT_GNU_SFRAME",
    "PathLike",
    "arch_of",
    "load",
    "load_from",
    "opened",
    "parsed",
    "sframe_sections",
]
