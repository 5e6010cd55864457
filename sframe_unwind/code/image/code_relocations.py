"""Applies the relocations of code and constants in an object file, as far as they give addresses."""

from __future__ import annotations

from typing import NamedTuple

from sframe_unwind.address import ByteOrder
from sframe_unwind.arch import Arch
from sframe_unwind.elf import ElfBinary, SectionHeader
from sframe_unwind.elf.constants import ENTRY, SHT_RELA, SYMBOL
from sframe_unwind.elf.relocation import fill, symbol_values

_UNDEFINED = 0
_INSTRUCTION = 4
"""Size of an instruction whose operand is not a whole number of bytes."""
_CODE_ORDER: ByteOrder = "little"
"""Byte order of such instructions: that of AArch64, also in big-endian programs."""
_FAR = 0x4000_0000


class _Symbol(NamedTuple):
    defined: bool
    value: int
    name: str


class CodeRelocations:
    """The relocations of an object file, for all of its sections: a file can have a section for each function."""

    def __init__(self, binary: ElfBinary) -> None:
        self._binary = binary
        self._tables: dict[int, list[SectionHeader]] = {}
        self._symbols: dict[int, list[_Symbol]] = {}
        for table in binary.sections:
            if table.type == SHT_RELA:
                self._tables.setdefault(table.info, []).append(table)

    def applied(self, number: int, contents: bytes) -> tuple[bytes, dict[int, str]]:
        """Return a section's contents with its relocations applied, and the names of symbols in other files.

        The names are by the address of the field.  An unknown relocation leaves the field unchanged.

        :param number: number of the section.
        """
        binary = self._binary
        result = bytearray(contents)
        external: dict[int, str] = {}
        start = binary.layout.addresses[number]
        for table in self._tables.get(number, ()):
            symbols = self._symbols_of(table.link)
            for offset, info, addend in binary.records(ENTRY, binary.contents(table)):
                symbol = info >> 32
                if symbol >= len(symbols) or offset >= len(result):
                    continue
                defined, value, name = symbols[symbol]
                if symbol and not defined:
                    external[start + offset] = name
                    # Must not be mistaken for a jump to the next instruction.
                    _apply(
                        contents=result,
                        arch=binary.arch,
                        kind=info & 0xFFFFFFFF,
                        offset=offset,
                        place=start + offset,
                        value=start + offset - _FAR,
                    )
                else:
                    _apply(
                        contents=result,
                        arch=binary.arch,
                        kind=info & 0xFFFFFFFF,
                        offset=offset,
                        place=start + offset,
                        value=value + addend,
                    )
        return bytes(result), external

    def _symbols_of(self, number: int) -> list[_Symbol]:
        """Return the symbols of a symbol table, which is decoded once."""
        if number not in self._symbols:
            self._symbols[number] = _symbols(self._binary, number)
        return self._symbols[number]


def _symbols(binary: ElfBinary, number: int) -> list[_Symbol]:
    table = binary.section(number)
    values = symbol_values(binary, number, binary.layout.addresses)
    strings = binary.strings(table)
    found = []
    for entry, value in zip(binary.records(SYMBOL, binary.contents(table)), values):
        name = strings[entry[0] : strings.find(b"\0", entry[0])].decode("utf-8", "backslashreplace")
        found.append(_Symbol(entry[3] != _UNDEFINED, value, name))
    return found


def _apply(contents: bytearray, arch: Arch, kind: int, offset: int, place: int, value: int) -> None:
    field = arch.elf_code.fields.get(kind)
    if field is not None:
        if offset + field.size <= len(contents):
            fill(contents, field, offset, (value, place), arch.byteorder)
    elif offset + _INSTRUCTION <= len(contents):
        code = slice(offset, offset + _INSTRUCTION)
        instruction = int.from_bytes(contents[code], _CODE_ORDER)
        relocated = arch.elf_code.relocate_instruction(instruction, kind, place, value)
        contents[code] = relocated.to_bytes(_INSTRUCTION, _CODE_ORDER)
