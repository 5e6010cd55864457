"""Adds SFrame with relocations to a copy of an object file; a linker merges it with the SFrame of other objects.

The start field of each function gets a relocation of 64 bits relative to the field, as GNU as writes it for version 3
(SFrame 3, "SFrame FDE", ``sfdi_func_start_offset``; flag ``SFRAME_F_FDE_FUNC_START_PCREL``).
"""

from __future__ import annotations

from sframe_unwind.address import RangeMap
from sframe_unwind.arch.elf_code import FieldRelocation, relative
from sframe_unwind.elf import SECTION_NAME, ElfBinary, SectionHeader
from sframe_unwind.elf.constants import (
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_INFO_LINK,
    SHN_LORESERVE,
    SHT_GNU_SFRAME,
    SHT_RELA,
    SHT_STRTAB,
    SHT_SYMTAB,
    SYMBOL,
)
from sframe_unwind.elf.records import RelocationEntry, encoded, layout
from sframe_unwind.errors import FileError
from sframe_unwind.sframe import encode
from sframe_unwind.sframe.constants import Flag
from sframe_unwind.sframe.encode import TableSpec
from sframe_unwind.sframe.section import Section

_ALIGNMENT = 8
_FIELD_SIZE = 8
"""Size of a start field of version 3, in bytes."""
_LOCAL = 0
"""``STB_LOCAL``: the binding of section symbols and of others that no other object file can replace."""


def with_sframe(binary: ElfBinary, table: TableSpec) -> tuple[bytes, bytes]:
    """Return a copy of an object file to which SFrame and its relocations are added, and the bytes of the section.

    :param binary: an object file without SFrame.
    :param table: a table of version 3; its addresses are those of the file's layout.
    :raises FileError: the file has no symbol that a relocation can refer to, or too many sections.
    """
    _check_room(binary)
    # The linker sorts the functions.
    table = table._replace(flags=table.flags & ~Flag.FDE_SORTED)
    content = bytearray(encode.encode(encode.SectionSpec(0, (table,))))
    fields = Section(bytes(content), 0).tables[0].start_fields
    for field in fields:  # relocations write them
        content[field : field + _FIELD_SIZE] = bytes(_FIELD_SIZE)
    symbols = _symbol_table(binary)
    anchors, kind = _anchors(binary, symbols), _relative_relocation(binary)
    relocations = []
    for field, function in zip(fields, table.functions):
        anchor = anchors.get(function.start)
        if anchor is None:
            raise FileError(f"no local symbol in the section with the function at {function.start:#x}")
        symbol, address = anchor
        entry = RelocationEntry(offset=field, info=symbol << 32 | kind, addend=function.start - address)
        relocations.append(entry)
    section = bytes(content)
    return _copy(binary, section, encoded(relocations, binary.byteorder), symbols.number), section


def _check_room(binary: ElfBinary) -> None:
    if not binary.header.shnum or binary.header.shnum + 2 >= SHN_LORESERVE:
        raise FileError("more than 65,277 sections, which a copy cannot have")


def _copy(binary: ElfBinary, section: bytes, relocations: bytes, symbols: int) -> bytes:
    """Return the file with both sections.  Names and headers of all sections are at its end.

    :param symbols: number of the section with the symbol table.
    """
    data, order, header = binary.whole(), binary.byteorder, binary.header
    headers = list(binary.sections)
    old = headers[header.shstrndx]
    names = data[old.offset : old.offset + old.size]
    own, of_relocations = len(names), len(names) + len(SECTION_NAME) + 1
    names += f"{SECTION_NAME}\0.rela{SECTION_NAME}\0".encode()
    content, places = bytearray(data), []
    for part in (section, relocations, names):
        content += bytes(-len(content) % _ALIGNMENT)
        places.append(len(content))
        content += part
    headers[header.shstrndx] = old._replace(type=SHT_STRTAB, offset=places[2], size=len(names))
    entry_size = layout(RelocationEntry, order).size
    headers += [
        SectionHeader(
            name_offset=own,
            type=SHT_GNU_SFRAME,
            flags=SHF_ALLOC,
            offset=places[0],
            size=len(section),
            alignment=_ALIGNMENT,
        ),
        SectionHeader(
            name_offset=of_relocations,
            type=SHT_RELA,
            flags=SHF_INFO_LINK,
            offset=places[1],
            size=len(relocations),
            link=symbols,
            info=len(headers),
            alignment=_ALIGNMENT,
            entry_size=entry_size,
        ),
    ]
    content += bytes(-len(content) % _ALIGNMENT)
    first = encoded([header._replace(shoff=len(content), shnum=len(headers))], order)
    content[: len(first)] = first
    return bytes(content + encoded(headers, order))


def _anchors(binary: ElfBinary, symbols: SectionHeader) -> RangeMap[tuple[int, int]]:
    """Map code to the number and the address of a symbol in its section; no other object can replace the symbol."""
    addresses, ends = binary.layout.addresses, binary.layout.ends
    entries = binary.records(SYMBOL, binary.contents(symbols))
    found: dict[int, tuple[int, int]] = {}
    for number, (_, info, _, section, value, _) in enumerate(entries):
        if info >> 4 != _LOCAL or not 0 < section < len(addresses) or section in found:
            continue
        if addresses[section] + value <= ends[section]:
            found[section] = number, addresses[section] + value
    code = (section.number for section in binary.sections if section.flags & SHF_EXECINSTR)
    return RangeMap((addresses[number], ends[number], found[number]) for number in code if number in found)


def _symbol_table(binary: ElfBinary) -> SectionHeader:
    for section in binary.sections:
        if section.type == SHT_SYMTAB:
            return section
    raise FileError("no symbols, to which the relocations of SFrame would refer")


def _relative_relocation(binary: ElfBinary) -> int:
    """Return the type of relocation for a field of 64 bits that is relative to itself."""
    wanted = FieldRelocation(_FIELD_SIZE, relative)
    return next(kind for kind, known in binary.arch.relocations.items() if known == wanted)
