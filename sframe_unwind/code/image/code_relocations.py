"""Applies the relocations of code and constants in an object file, as far as they give addresses."""

from __future__ import annotations

from collections.abc import Mapping

from sframe_unwind.address import ByteOrder
from sframe_unwind.arch import Arch
from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.constants import SYMBOL
from sframe_unwind.elf.relocation import fill

_UNDEFINED = 0
_INSTRUCTION = 4
"""Size of an instruction whose operand is not a whole number of bytes."""
_CODE_ORDER: ByteOrder = "little"
"""Byte order of such instructions: that of AArch64, also in big-endian programs."""
_FAR = 0x4000_0000
"""Distance in bytes from a field to the address that stands for a symbol in another file; it must not be mistaken for a
jump to the next instruction."""


class CodeRelocations:
    """The relocations of an object file, for all of its sections: a file can have a section for each function."""

    def __init__(self, binary: ElfBinary) -> None:
        self._binary = binary
        self._undefined: dict[int, Mapping[int, str]] = {}

    def applied(self, number: int, contents: bytes) -> tuple[bytes, dict[int, str]]:
        """Return a section's contents with its relocations applied, and the names of symbols in other files.

        The names are by the address of the field.  An unknown relocation leaves the field unchanged.

        :param number: number of the section.
        """
        relocations, arch = self._binary.relocations, self._binary.arch
        result = bytearray(contents)
        external: dict[int, str] = {}
        start = self._binary.layout.addresses[number]
        for entry, table, _ in relocations.of(number):
            values = relocations.symbol_values(table)
            if entry.symbol >= len(values) or entry.offset >= len(result):
                continue
            place = start + entry.offset
            name = self._undefined_in(table).get(entry.symbol)
            if name is not None:
                external[place] = name
                value = place - _FAR
            else:
                value = values[entry.symbol] + entry.addend
            _apply(contents=result, arch=arch, kind=entry.kind, offset=entry.offset, place=place, value=value)
        return bytes(result), external

    def _undefined_in(self, table: int) -> Mapping[int, str]:
        """Return the names of the symbols in other files, by their numbers in a symbol table, which is decoded once."""
        if table not in self._undefined:
            self._undefined[table] = _undefined_symbols(self._binary, table)
        return self._undefined[table]


def _undefined_symbols(binary: ElfBinary, number: int) -> dict[int, str]:
    table = binary.section(number)
    strings = binary.strings(table)
    found = {}
    for index, entry in enumerate(binary.records(SYMBOL, binary.contents(table))):
        if index and entry[3] == _UNDEFINED:
            found[index] = strings[entry[0] : strings.find(b"\0", entry[0])].decode("utf-8", "backslashreplace")
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
