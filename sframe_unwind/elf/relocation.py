"""The relocations of an object file's unwind sections, which fill in where the functions start.

pyelftools has no recipe for the 64-bit PC-relative types of AMD64, AArch64 and s390x (R_X86_64_PC64,
R_AARCH64_PREL64, R_390_PC64), which fill in version 3's start fields; and it adds the symbol's value alone, while the
sections of an object file need an address each, so that no two functions get the same one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section as ElfSection

from sframe_unwind.arch import ARCHES
from sframe_unwind.errors import FileError, FormatError
from sframe_unwind.sframe.section import Section

SYMBOL = "IBBHQQ"
"""The fields of a symbol: name, info, other, section, value, size."""
_ENTRY = "QQq"
_EXTENDED, _FIRST_RESERVED = 0xFFFF, 0xFF00
"""Section numbers of symbols: it stands elsewhere; there is none from here on."""


class _Relocation(NamedTuple):
    offset: int
    kind: int
    symbol: int
    addend: int


class Relocations:
    """The relocations of a file.  One that is not an object file (``ET_REL``) has none that are still to be applied.

    :param addresses: of all sections, by their numbers (:class:`sframe_unwind.elf.section_addresses.Layout`).  By
        default all lie at address 0, so that an address is an offset into the section that holds the function, as in
        what readelf prints.
    """

    def __init__(self, elf: ELFFile, addresses: Sequence[int] = ()) -> None:
        self._elf = elf
        self._addresses = addresses
        self._kinds = next((arch.relocations for arch in ARCHES if arch.elf_machine == elf["e_machine"]), {})
        self._order: Literal["little", "big"] = "little" if elf.little_endian else "big"
        self._tables: dict[int, list[ElfSection]] = {}
        self._values: dict[int, list[int]] = {}
        if elf["e_type"] == "ET_REL":
            for table in elf.iter_sections():
                if table["sh_type"] in ("SHT_REL", "SHT_RELA"):
                    self._tables.setdefault(table["sh_info"], []).append(table)

    def relocated(self, number: int, section: ElfSection) -> bytes | None:
        """Return the contents of a section with its relocations applied, ``None`` where it has none.

        :param number: of the section; several can share a name (section groups).
        :raises FileError: a relocation is of a type that does not belong there, or lies outside the section.
        """
        if number not in self._tables:
            return None
        contents = bytearray(section.data())
        place = self._addresses[number] if self._addresses else 0
        for table in self._tables[number]:
            if table["sh_type"] == "SHT_REL":  # used by none of the ABIs
                raise FileError(f"relocations of {section.name} without addends, expected ones with addends")
            values = self._symbol_values(table["sh_link"])
            for entry in self._entries(table):
                if entry.kind not in self._kinds:
                    raise FileError(
                        f"relocation of type {entry.kind} in {section.name} at {entry.offset:#x} is not known"
                    )
                size, relative = self._kinds[entry.kind]
                if entry.offset + size > len(contents):
                    raise FileError(f"relocation in {section.name} at {entry.offset:#x} lies outside the section")
                if entry.symbol >= len(values):
                    raise FileError(f"relocation in {section.name} at {entry.offset:#x}: no symbol {entry.symbol}")
                value = values[entry.symbol] + entry.addend
                value = (value - place - entry.offset if relative else value) % (1 << 8 * size)
                contents[entry.offset : entry.offset + size] = value.to_bytes(size, self._order)
        return bytes(contents)

    def check_targets(self, number: int, decoded: Section) -> None:
        """Check that the relocations of an SFrame section fill in start fields and nothing else.

        GNU ld 2.40 and 2.44 do not, with ``-r`` and more than one input: the relocations of all but the first are
        left at places where something else has come to lie.

        :raises FormatError: one does not.
        """
        fields = [table.start_fields for table in decoded.tables]
        for table in self._tables.get(number, ()):
            for entry in self._entries(table):
                if not any(entry.offset in places for places in fields):
                    raise FormatError("relocation that is not for the start field of a function", entry.offset)

    def _symbol_values(self, table: int) -> list[int]:
        if table not in self._values:
            self._values[table] = symbol_values(self._elf, table, self._addresses)
        return self._values[table]

    def _entries(self, table: ElfSection) -> Iterator[_Relocation]:
        for offset, info, addend in records(self._elf, _ENTRY, table.data()):
            if kind := info & 0xFFFFFFFF:
                yield _Relocation(offset, kind, info >> 32, addend)


def symbol_values(elf: ELFFile, table: int, addresses: Sequence[int]) -> list[int]:
    """Return the values of all symbols of a table.

    :param table: number of the section with the symbols.
    :param addresses: what values count from: addresses of all sections, by their numbers; none at all: 0.
    """
    numbers = [
        number
        for section in elf.iter_sections("SHT_SYMTAB_SHNDX")  # of files with more sections than a symbol can name
        if section["sh_link"] == table
        for (number,) in records(elf, "I", section.data())
    ]
    values = []
    for index, (_, _, _, section, value, _) in enumerate(records(elf, SYMBOL, elf.get_section(table).data())):
        if section == _EXTENDED and index < len(numbers):
            section = numbers[index]
        elif section >= _FIRST_RESERVED:
            section = 0
        values.append(value + (addresses[section] if section < len(addresses) else 0))
    return values


def records(elf: ELFFile, layout: str, data: bytes) -> Iterator[tuple[int, ...]]:
    """Return the records of a table in the byte order of the file."""
    # pyelftools makes an object of each, which takes seconds where this takes a tenth of one.
    record = struct.Struct(("<" if elf.little_endian else ">") + layout)
    return record.iter_unpack(data[: len(data) // record.size * record.size])
