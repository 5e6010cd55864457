"""The addresses of the sections of an ELF file.

The sections of an object file have no addresses; here each gets a distinct one.
"""

from __future__ import annotations

from sframe_unwind.address import Range, find_range
from sframe_unwind.elf.constants import SHF_ALLOC, SHF_EXECINSTR, SHF_TLS
from sframe_unwind.elf.contents import Reader
from sframe_unwind.named_tuple import NamedTuple

_FIRST = 0x1000
_GAP = 64
"""Bytes between two sections, so that an address just after the end of one is not in the next."""


class FileAddress(NamedTuple):
    """An address as tools show it: absolute in a linked file, relative to the section in an object file."""

    section: str
    """Name of the section; empty: the address is in no section."""
    address: int
    """The address, or the offset from the start of the section in bytes."""
    relative: bool
    """:attr:`address` is an offset from the start of the section."""

    def __str__(self) -> str:
        return f"{self.section}+{self.address:#x}" if self.relative else f"{self.address:#x}"

    def with_name(self, name: str) -> str:
        """Return the address with the name of the function; if it has none, with the section, if that is helpful."""
        name = name or (f"({self.section})" if self.section and not self.relative else "")
        return f"{self} {name}".rstrip()


class Layout:
    """The addresses of all sections.  Sections that are not loaded are at address 0, as in a linked file.

    :param as_written: the sections of an object file have the addresses that their headers give, as in the images of
        run-time compilers.
    """

    def __init__(self, reader: Reader, as_written: bool = False) -> None:
        self.relocatable: bool = reader.is_object
        self.addresses: list[int] = []
        """The address of each section, by section number."""
        self.ends: list[int] = []
        """The end address (exclusive) of each section, by section number."""
        self.code: list[tuple[int, int]] = []
        """Start and end address (exclusive) of each section with instructions, sorted."""
        self._sections: list[tuple[int, int, str]] = []
        following = _FIRST
        for section in reader.sections:
            address, size, flags = section.address, section.size, section.flags
            if self.relocatable and flags & SHF_ALLOC and not as_written:
                address = following + -following % max(section.alignment, 1)
                following = address + size + _GAP
            self.addresses.append(address)
            self.ends.append(address + size)
            if flags & SHF_ALLOC and not flags & SHF_TLS:
                self._sections.append((address, address + size, section.name))
            in_file = section.has_contents and section.offset + size <= reader.size
            if flags & SHF_EXECINSTR and size and in_file:
                self.code.append((address, address + size))
        self._sections.sort()
        self.code.sort()

    def code_section(self, address: int) -> Range | None:
        """Return the extent of the code section that contains an address; ``None``: no code section does."""
        return find_range(self.code, address)

    def code_end(self, address: int) -> int | None:
        """Return the end address of the code section that contains an address; ``None``: no code section does."""
        found = find_range(self.code, address)
        return None if found is None else found[1]

    def starts(self, name: str) -> list[int]:
        """Return the addresses of all loaded sections with a name; a file with section groups has several."""
        return [start for start, end, found in self._sections if found == name and start < end]

    def spot(self, address: int) -> FileAddress:
        """Return an address as section and offset, or as an absolute address."""
        found = find_range(self._sections, address)
        if found is None:
            return FileAddress("", address, False)
        start, _, name = found
        fields = name, address - start if self.relocatable else address, self.relocatable
        return tuple.__new__(FileAddress, fields)  # half the time of calling the class
