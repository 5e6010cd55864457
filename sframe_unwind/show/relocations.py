"""Names the relocations of the code of an object file, as ``objdump -dr`` does."""

from __future__ import annotations

from bisect import bisect_left

from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.constants import SYMBOL


class CodeFields:
    """The relocations of an object file by section; there are none in a linked file."""

    def __init__(self, binary: ElfBinary) -> None:
        self._binary = binary
        self._names: dict[int, list[str]] = {}
        self._fields: dict[int, list[tuple[int, str]]] = {}

    def between(self, number: int, start: int, end: int) -> list[tuple[int, str]]:
        """Return offset and text of the relocations of fields in a part of a section, in order.

        :param number: number of the section.
        :param start: offset in the section, in bytes.
        :param end: offset after the last byte.
        """
        if number not in self._fields:
            self._fields[number] = sorted(self._of(number))
        fields = self._fields[number]
        return fields[bisect_left(fields, (start,)) : bisect_left(fields, (end,))]

    def _of(self, number: int) -> list[tuple[int, str]]:
        binary, found = self._binary, []
        for entry, table, _ in binary.relocations.of(number):
            names = self._names_of(table)
            name = names[entry.symbol] if entry.symbol < len(names) else f"symbol {entry.symbol}"
            added = f"{'-' if entry.addend < 0 else '+'}{abs(entry.addend):#x}" if entry.addend else ""
            found.append((entry.offset, f"{binary.relocation_name(entry.kind)} {name or '*ABS*'}{added}"))
        return found

    def _names_of(self, number: int) -> list[str]:
        """Return the name of each symbol of a table; a symbol of a section has the section's name."""
        if number not in self._names:
            binary = self._binary
            table = binary.section(number)
            strings, sections = binary.strings(table), binary.sections
            names = []
            for at, _, _, section, _, _ in binary.records(SYMBOL, binary.contents(table)):
                name = strings[at : max(strings.find(b"\0", at), at)].decode("utf-8", "backslashreplace")
                names.append(name or (sections[section].name if 0 < section < len(sections) else ""))
            self._names[number] = names
        return self._names[number]
