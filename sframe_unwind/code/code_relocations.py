"""The relocations of code and constants in an object file, as far as they say where things are."""

from __future__ import annotations

from sframe_unwind.address import ByteOrder
from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.constants import ENTRY, SHT_RELA, SYMBOL
from sframe_unwind.elf.relocation import symbol_values

_UNDEFINED = 0
_FAR = 0x4000_0000

# Relocation type to how the field is filled in.
_ABSOLUTE, _RELATIVE = False, True
_PLAIN = {
    "EM_X86_64": {
        1: (8, _ABSOLUTE),
        2: (4, _RELATIVE),
        4: (4, _RELATIVE),
        10: (4, _ABSOLUTE),
        11: (4, _ABSOLUTE),
        24: (8, _RELATIVE),
        15: (1, _RELATIVE),
    },
    "EM_AARCH64": {257: (8, _ABSOLUTE), 258: (4, _ABSOLUTE), 260: (8, _RELATIVE), 261: (4, _RELATIVE)},
    "EM_S390": {4: (4, _ABSOLUTE), 5: (4, _RELATIVE), 22: (8, _ABSOLUTE), 23: (8, _RELATIVE)},
}
"""Size in bytes, and whether what is filled in counts from the field."""
_HALVES = {16: 2, 18: 2, 19: 4, 20: 4}
"""s390x: sizes of fields that count from the field in units of two bytes."""
_BRANCHES = {282: (26, 0), 283: (26, 0), 280: (19, 5), 279: (14, 5)}
"""AArch64: bits and position of fields that count in units of four bytes."""
_PAGES, _LOW = 275, 277
_ADR = 274


def relocate(binary: ElfBinary, number: int, contents: bytes) -> tuple[bytes, dict[int, str]]:
    """Return a section's contents with its relocations applied, and the names of what is in other files.

    The names are by the address of the field.  A relocation that is not known leaves the field as it is.

    :param number: of the section.
    """
    result = bytearray(contents)
    external: dict[int, str] = {}
    start = binary.layout.addresses[number]
    for table in binary.sections:
        if table.type != SHT_RELA or table.info != number:
            continue
        symbols = _symbols(binary, table.link)
        for offset, info, addend in binary.records(ENTRY, binary.contents(table)):
            symbol = info >> 32
            if symbol >= len(symbols) or offset >= len(result):
                continue
            defined, value, name = symbols[symbol]
            if symbol and not defined:
                external[start + offset] = name
                # Not to be taken for a jump to the next instruction.
                _apply(result, binary, info & 0xFFFFFFFF, offset, start + offset, start + offset - _FAR)
            else:
                _apply(result, binary, info & 0xFFFFFFFF, offset, start + offset, value + addend)
    return bytes(result), external


def _symbols(binary: ElfBinary, number: int) -> list[tuple[bool, int, str]]:
    table = binary.section(number)
    values = symbol_values(binary, number, binary.layout.addresses)
    strings = binary.strings(table)
    found = []
    for entry, value in zip(binary.records(SYMBOL, binary.contents(table)), values):
        name = strings[entry[0] : strings.find(b"\0", entry[0])].decode("utf-8", "backslashreplace")
        found.append((entry[3] != _UNDEFINED, value, name))
    return found


def _apply(contents: bytearray, binary: ElfBinary, kind: int, offset: int, place: int, value: int) -> None:
    order, machine = binary.byteorder, binary.machine
    plain = _PLAIN.get(machine, {}).get(kind)
    if plain is not None:
        size, relative = plain
        _fill(contents, offset, size, value - place if relative else value, order)
    elif machine == "EM_S390" and kind in _HALVES:
        _fill(contents, offset, _HALVES[kind], (value - place) >> 1, order)
    elif machine == "EM_AARCH64" and offset + 4 <= len(contents):
        word = int.from_bytes(contents[offset : offset + 4], "little")
        contents[offset : offset + 4] = _aarch64(word, kind, place, value).to_bytes(4, "little")


def _fill(contents: bytearray, offset: int, size: int, value: int, order: ByteOrder) -> None:
    if offset + size <= len(contents):
        contents[offset : offset + size] = (value & (1 << 8 * size) - 1).to_bytes(size, order)


def _aarch64(word: int, kind: int, place: int, value: int) -> int:
    if kind in _BRANCHES:
        bits, shift = _BRANCHES[kind]
        mask = (1 << bits) - 1
        return word & ~(mask << shift) | ((value - place) >> 2 & mask) << shift
    if kind in (_PAGES, _ADR):
        distance = (value >> 12) - (place >> 12) if kind == _PAGES else value - place
        return word & 0x9F00001F | (distance & 3) << 29 | (distance >> 2 & 0x7FFFF) << 5
    if kind == _LOW:
        return word & ~(0xFFF << 10) | (value & 0xFFF) << 10
    return word
