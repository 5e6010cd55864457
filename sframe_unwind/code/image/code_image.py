"""The code and the constants of an ELF file at their addresses, with the linker's knowledge about them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Protocol

from sframe_unwind.address import ByteOrder, Range, merged
from sframe_unwind.code.image.ranges import Addresses
from sframe_unwind.named_tuple import NamedTuple

_BEYOND = 1 << 64
"""An address after all others."""


class Contents(Protocol):
    """The bytes of a section: all of them, or read when they are needed."""

    def __len__(self) -> int: ...

    def __getitem__(self, wanted: slice, /) -> bytes: ...


class CodeSection(NamedTuple):
    """A loaded section."""

    start: int
    """Start address."""
    contents: Contents
    executable: bool
    writable: bool

    @property
    def end(self) -> int:
        """Address after the last byte."""
        return self.start + len(self.contents)


class Plt(NamedTuple):
    """A procedure linkage table."""

    start: int
    """Start address."""
    end: int
    first: int
    """Address of the first entry; the header is before it."""
    entry_size: int
    """Size of an entry in bytes."""


class CodeImage:
    """The readable parts of a program that is not running.

    :param sections: all loaded sections, with their relocations applied.
    :param byteorder: byte order of data.
    :param names: names of called functions by address, to find those that do not return.
    :param external: by the address of an instruction field, the name of the symbol in another file whose address a
        linker would write there.
    :param pointers: the values that a dynamic linker would write, by address.
    """

    def __init__(
        self,
        sections: list[CodeSection],
        byteorder: ByteOrder,
        not_returning: frozenset[int] = frozenset(),
        external: Mapping[int, str] | None = None,
        pointers: Mapping[int, int] | None = None,
        plts: tuple[Plt, ...] = (),
        entry_point: int | None = None,
    ) -> None:
        self._sections = sorted(sections, key=lambda section: section.start)
        self._starts = [section.start for section in self._sections]
        self.byteorder = byteorder
        """The byte order of data."""
        self.not_returning = not_returning
        self.external = external or {}
        self._pointers = pointers or {}
        self.plts = plts
        self.entry_point = entry_point
        """The address at which the program starts, without a caller."""
        self.relative = False
        """The sections have no addresses yet, as in an object file: tools show offsets in them."""
        self.reachable = Addresses()
        """Addresses of functions that other files can call, and of code that data points to."""
        self.interposable = Addresses()
        """Addresses of an object file's functions that a function of another file may replace at run time."""
        self.static_branches: Mapping[int, int] = {}
        """The targets of jumps that a kernel replaces by nops while it runs, or that replace nops, by address."""

    def section(self, address: int) -> CodeSection | None:
        """Return the section that contains an address."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        section = self._sections[at]
        return section if address < section.end else None

    def data_sections(self) -> Iterator[CodeSection]:
        """Yield the sections without code."""
        return (section for section in self._sections if not section.executable)

    def code_extents(self) -> list[Range]:
        """Return the extents of the sections with code; those that touch are one."""
        return merged((section.start, section.end) for section in self._sections if section.executable)

    def plt(self, address: int) -> Plt | None:
        """Return the procedure linkage table that contains an address."""
        return next((plt for plt in self.plts if plt.start <= address < plt.end), None)

    def is_code(self, address: int) -> bool:
        """Return whether there is code at an address."""
        section = self.section(address)
        return section is not None and section.executable

    def bytes_at(self, address: int, size: int) -> bytes:
        """Return the bytes at an address; fewer at the end of a section, and none outside of all."""
        section = self.section(address)
        return (
            b""
            if section is None
            else bytes(section.contents[address - section.start : address - section.start + size])
        )

    def read(self, address: int, size: int) -> int | None:
        """Return the unsigned number that is at an address when the program starts."""
        address &= _BEYOND - 1
        if address in self._pointers and size == 8:
            return self._pointers[address]
        section = self.section(address)
        if section is None or address + size > section.end:
            return None
        offset = address - section.start
        return int.from_bytes(section.contents[offset : offset + size], self.byteorder)

    def read_constant(self, address: int, size: int) -> int | None:
        """Return the number at an address if it cannot change."""
        section = self.section(address)
        if section is None or section.writable:
            return None
        is_filled_in = self.external and any(field in self.external for field in range(address - 7, address + size))
        return None if is_filled_in else self.read(address, size)

    def external_call(self, address: int, size: int) -> str | None:
        """Return the name of the symbol in another file to which an instruction refers."""
        if not self.external:
            return None
        return next((self.external[field] for field in range(address, address + size) if field in self.external), None)
