"""The addresses that a user names: numbers, symbols, and sections of object files, each with or without an offset."""

from __future__ import annotations

import re

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.elf.symbols import Symbols
from sframe_unwind.errors import FileError
from sframe_unwind.report.terminal import printable

_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")
_MAX_DIGITS = 24
"""Maximum number of digits, more than the largest address has; Python refuses to convert thousands of digits."""


class Addresses:
    """Converts texts to addresses in one file.

    :param symbols: the symbols of the file.
    :param layout: the addresses of its sections.
    """

    def __init__(self, symbols: Symbols, layout: Layout) -> None:
        self._symbols = symbols
        self._layout = layout

    @property
    def in_sections(self) -> bool:
        """Whether addresses are relative to sections, as in an object file."""
        return self._layout.relocatable

    def find(self, text: str) -> list[int]:
        """Return the addresses that a text denotes: several if several symbols or sections have the name.

        :raises FileError: it is not an address, symbol or section, or a number in an object file, in which each section
            begins at 0.
        """
        if _NUMBER.fullmatch(text):
            return [self._absolute(text)]
        if found := self._named(text):
            return found
        name, _, offset = text.rpartition("+")
        if name and _NUMBER.fullmatch(offset) and (found := self._named(name)):
            return [address + _number(offset) & ADDRESS_MASK for address in found]
        kinds = "a symbol nor section+offset" if self._layout.relocatable else "an address nor a symbol"
        raise FileError(f"{text or repr(text)}: neither {kinds} of the file")

    def shown(self, address: int) -> str:
        """Return an address as text: in an object file, as section and offset."""
        return printable(str(self._layout.spot(address))) if self._layout.relocatable else f"{address:#x}"

    def offset(self, address: int) -> int:
        """Return an address as the number in its text."""
        return self._layout.spot(address).address

    def _named(self, name: str) -> list[int]:
        found = self._symbols.addresses(name)
        return found or (self._layout.starts(name) if self._layout.relocatable else [])

    def _absolute(self, text: str) -> int:
        if not self._layout.relocatable:
            return _number(text)
        if len(self._layout.code) != 1:
            raise FileError(f"{text}: in an object file, expected a symbol or section+offset, as .text+{text}")
        return self._layout.code[0][0] + _number(text)


def _number(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise FileError(f"{text[:_MAX_DIGITS]}...: a number of {len(text)} digits is not an address")
    return int(text, 16 if text[:2] in ("0x", "0X") else 10)
