"""Applies the relocations of the unwind sections of an object file, which write the addresses of functions.

Sections get addresses first, so that functions in different sections have different ones.  The effect of each type is
an operation on its field (:class:`sframe_unwind.arch.elf_code.FieldRelocation`), which the file of a machine lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sframe_unwind.address import ByteOrder
from sframe_unwind.arch import ARCHES
from sframe_unwind.arch.elf_code import FieldRelocation
from sframe_unwind.elf.constants import ENTRY, SHN_LORESERVE, SHN_XINDEX, SHT_REL, SHT_RELA, SHT_SYMTAB_SHNDX, SYMBOL
from sframe_unwind.elf.contents import Reader
from sframe_unwind.elf.records import SectionHeader
from sframe_unwind.errors import FileError, FormatError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.section import Section


class Relocation(NamedTuple):
    """One relocation."""

    offset: int
    """Offset of its field in the section, in bytes."""
    kind: int
    """Its type, which the psABI supplement of the machine defines."""
    symbol: int
    """Number of the symbol in the table that belongs to the relocation's section."""
    addend: int


class Relocations:
    """The relocations of an object file (``ET_REL``).  In other files there are none to apply.

    :param addresses: the addresses of all sections by section number
        (:class:`sframe_unwind.elf.section_addresses.Layout`).  Empty: all sections are at address 0.  The address of a
        function is then its offset in its section, as in the output of readelf.
    """

    def __init__(self, reader: Reader, addresses: Sequence[int] = ()) -> None:
        self._reader = reader
        self._addresses = addresses
        self._kinds = next((arch.relocations for arch in ARCHES if arch.elf_machine == reader.machine), {})
        self._tables: dict[int, list[SectionHeader]] = {}
        self._values: dict[int, list[int]] = {}
        if reader.is_object:
            for table in reader.sections:
                if table.type in (SHT_REL, SHT_RELA):
                    self._tables.setdefault(table.info, []).append(table)

    def has(self, section: SectionHeader) -> bool:
        """Return whether a section has relocations to apply."""
        return section.number in self._tables

    def address(self, section: SectionHeader) -> int:
        """Return the address of a section that its relocations use."""
        return self._addresses[section.number] if self._addresses else section.address

    def contents(self, section: SectionHeader) -> bytes:
        """Return the contents of a section with its relocations applied, if it has any.

        :raises FileError: a relocation is of an unknown type, or outside the section.
        """
        contents = self._reader.contents(section)
        return self._relocated(section, contents) if self.has(section) else contents

    def _relocated(self, section: SectionHeader, plain: bytes) -> bytes:
        contents = bytearray(plain)
        address = self._addresses[section.number] if self._addresses else 0
        for table in self._tables[section.number]:
            if table.type == SHT_REL:  # the ABIs of SFrame all use SHT_RELA
                raise FileError(f"relocations of {section.name} without addends, expected ones with addends")
            values = self.symbol_values(table.link)
            for entry in self._entries(table):
                if entry.kind not in self._kinds:
                    raise FileError(
                        f"relocation of type {entry.kind} in {section.name} at {entry.offset:#x} is not known"
                    )
                kind = self._kinds[entry.kind]
                if entry.offset + kind.size > len(contents):
                    raise FileError(f"relocation in {section.name} at {entry.offset:#x} lies outside the section")
                if entry.symbol >= len(values):
                    raise FileError(f"relocation in {section.name} at {entry.offset:#x}: no symbol {entry.symbol}")
                value = values[entry.symbol] + entry.addend
                fill(contents, kind, entry.offset, (value, address + entry.offset), self._reader.byteorder)
        return bytes(contents)

    def of(self, number: int) -> Iterator[tuple[Relocation, int, bool | None]]:
        """Yield the relocations of a section, except those without effect (``R_*_NONE``) and those without addends.

        Each comes with the number of its symbol table's section, and whether its value is relative to the field
        (``None``: its type is unknown).

        :param number: number of the section.
        """
        for table in self._tables.get(number, ()):
            if table.type == SHT_REL:
                continue
            for entry in self._entries(table):
                kind = self._kinds.get(entry.kind)
                yield entry, table.link, kind and kind.pc_relative

    def check_targets(self, number: int, decoded: Section) -> None:
        """Check that the relocations of an SFrame section apply to start fields only.

        GNU ld 2.40 and 2.44 violate this with ``-r`` and more than one input file: for all inputs but the first, they
        do not adjust the offsets of the relocations.

        :raises FormatError: a relocation applies to another field.
        """
        fields = [table.start_fields for table in decoded.tables]
        for table in self._tables.get(number, ()):
            for entry in self._entries(table):
                if not any(entry.offset in offsets for offsets in fields):
                    raise FormatError("relocation that is not for the start field of a function", entry.offset)

    def symbol_values(self, table: int) -> list[int]:
        """Return the values of all symbols of a symbol table; see :func:`symbol_values`.

        :param table: number of the section with the symbol table.
        """
        if table not in self._values:
            self._values[table] = symbol_values(self._reader, table, self._addresses)
        return self._values[table]

    def _entries(self, table: SectionHeader) -> Iterator[Relocation]:
        for offset, info, addend in self._reader.records(ENTRY, self._reader.contents(table)):
            if kind := info & 0xFFFFFFFF:
                yield Relocation(offset, kind, info >> 32, addend)


def fill(
    contents: bytearray, kind: FieldRelocation, offset: int, operands: tuple[int, int], byteorder: ByteOrder
) -> None:
    """Apply one relocation to its field, which must be within the contents.

    :param offset: offset of the field, in bytes.
    :param operands: the value of the symbol plus the addend, and the address of the field.
    """
    field = slice(offset, offset + kind.size)
    filled = kind.operation(*operands, int.from_bytes(contents[field], byteorder))
    contents[field] = (filled % (1 << 8 * kind.size)).to_bytes(kind.size, byteorder)


def symbol_values(reader: Reader, table: int, addresses: Sequence[int]) -> list[int]:
    """Return the values of all symbols of a symbol table.

    :param table: number of the section with the symbol table.
    :param addresses: the addresses of all sections by section number, which are added to the values; empty: nothing
        is added.
    """
    entries = reader.records(SYMBOL, reader.contents(reader.section(table)))
    if not addresses:
        return [value for _, _, _, _, value, _ in entries]
    numbers = [
        number
        for section in reader.sections
        # Such sections exist in files with 65,280 sections or more.
        if section.type == SHT_SYMTAB_SHNDX and section.link == table
        for (number,) in reader.records("I", reader.contents(section))
    ]
    values = []
    for index, (_, _, _, section_number, value, _) in enumerate(entries):
        if section_number == SHN_XINDEX and index < len(numbers):
            section_number = numbers[index]
        elif section_number >= SHN_LORESERVE:
            section_number = 0
        values.append(value + (addresses[section_number] if section_number < len(addresses) else 0))
    return values
