"""The relocations of an object file's SFrame section, which fill in where the functions start.

pyelftools applies 32-bit relocations only; version 3 has 64-bit start fields.
"""

from __future__ import annotations

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Section as ElfSection

from sframe_unwind.errors import FileError, FormatError
from sframe_unwind.section import Section

_KINDS = {
    "EM_X86_64": {1: (8, False), 2: (4, True), 10: (4, False), 11: (4, False), 24: (8, True)},
    "EM_AARCH64": {257: (8, False), 258: (4, False), 260: (8, True), 261: (4, True)},
    "EM_S390": {4: (4, False), 5: (4, True), 22: (8, False), 23: (8, True)},
}
"""Relocation type to the field's length in bytes, and whether it is relative to the field's own address."""


def relocated(elf: ELFFile, section: ElfSection) -> bytes | None:
    """Return the contents of a section of an object file with its relocations applied.

    All sections of an object file lie at address 0, so an address is an offset into the section that holds
    the function, as in what readelf prints.

    :returns: ``None`` where the file is none that is relocated (not ``ET_REL``), or nothing relocates the section.
    :raises FileError: a relocation is of a type that does not belong there, or lies outside the section.
    """
    if elf["e_type"] != "ET_REL":
        return None
    tables = _tables(elf, section)
    if not tables:
        return None
    contents = bytearray(section.data())
    kinds = _KINDS.get(elf["e_machine"], {})
    order = "little" if elf.little_endian else "big"
    for table in tables:
        symbols = elf.get_section(table["sh_link"])
        for entry in table.iter_relocations():
            number, offset = entry["r_info_type"], entry["r_offset"]
            if number == 0:
                continue
            if number not in kinds or not entry.is_RELA():
                raise FileError(f"relocation of type {number} in {section.name} at {offset:#x} is not known")
            size, relative = kinds[number]
            if offset + size > len(contents):
                raise FileError(f"relocation in {section.name} at {offset:#x} lies outside the section")
            value = symbols.get_symbol(entry["r_info_sym"])["st_value"] + entry["r_addend"]
            value = (value - offset if relative else value) % (1 << 8 * size)
            contents[offset : offset + size] = value.to_bytes(size, order)
    return bytes(contents)


def check_targets(elf: ELFFile, section: ElfSection, decoded: Section) -> None:
    """Check that the relocations of an object file's section fill in start fields and nothing else.

    GNU ld 2.40 and 2.44 do not, with ``-r`` and more than one input: the relocations of all but the first are left
    at places where something else has come to lie.

    :raises FormatError: one does not.
    """
    fields = [table.start_fields for table in decoded.tables]
    for table in _tables(elf, section):
        for entry in table.iter_relocations():
            offset = entry["r_offset"]
            if entry["r_info_type"] and not any(offset in places for places in fields):
                raise FormatError("relocation that is not for the start field of a function", offset)


def _tables(elf: ELFFile, section: ElfSection) -> list[RelocationSection]:
    """Return the relocation sections for a section, which may share its name with others (section groups)."""
    sections = list(elf.iter_sections())
    index = sections.index(section)
    return [table for table in sections if isinstance(table, RelocationSection) and table["sh_info"] == index]
