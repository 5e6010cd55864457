"""ELF files on disk, read with pyelftools: SFrame sections, relocations, symbols, CFI and archives."""

from sframe_unwind.elf.file import (
    PT_GNU_SFRAME,
    SECTION_NAME,
    SHT_GNU_SFRAME,
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
