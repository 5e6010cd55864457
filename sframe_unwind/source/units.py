"""Units of ``.debug_info``: their headers and entries (DWARF 5, 7.5.1 and 7.5.2)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from sframe_unwind.cfi.leb128 import read_uleb128
from sframe_unwind.errors import FormatError
from sframe_unwind.memory import STRUCT_MARKS
from sframe_unwind.source import forms
from sframe_unwind.source.abbreviations import Abbreviation, read_abbreviations
from sframe_unwind.source.forms import Encoding, Value
from sframe_unwind.source.ranges import read_ranges
from sframe_unwind.source.sections import DebugSections

INFO = ".debug_info"
_LONGEST_HEADER = 48
_SKELETON, _SPLIT, _TYPE, _SPLIT_TYPE = 4, 5, 2, 6
_MAX_UNIT = 1 << 27
"""Bytes of a unit; that of a whole program optimised at once (LTO) has tens of megabytes."""

AT_SIBLING, AT_NAME, AT_STMT_LIST, AT_LOW_PC, AT_HIGH_PC, AT_COMP_DIR = 0x01, 0x03, 0x10, 0x11, 0x12, 0x1B
AT_ABSTRACT_ORIGIN, AT_SPECIFICATION, AT_RANGES, AT_CALL_FILE, AT_CALL_LINE = 0x31, 0x47, 0x55, 0x58, 0x59
AT_LINKAGE_NAME, AT_MIPS_LINKAGE_NAME = 0x6E, 0x2007
AT_STR_OFFSETS_BASE, AT_ADDR_BASE, AT_RNGLISTS_BASE = 0x72, 0x73, 0x74
_GNU_ADDR_BASE = 0x2133


class Entry(NamedTuple):
    """An entry: its kind, and where its values are."""

    offset: int
    """In the unit, in bytes."""
    abbreviation: Abbreviation
    values: int
    """Offset of its values, likewise."""


class Unit:
    """A unit.

    :param offset: where it begins in ``.debug_info``, in bytes.
    :raises FormatError: the header is malformed, or of a version that is not known.
    """

    def __init__(self, sections: DebugSections, offset: int) -> None:
        self.sections = sections
        self.offset = offset
        mark = STRUCT_MARKS[sections.byteorder]
        head = sections.read(INFO, offset, min(_LONGEST_HEADER, max(sections.size(INFO) - offset, 0)))
        try:
            (length,), at, offset_size = struct.unpack_from(mark + "I", head), 4, 4
            if length == 0xFFFFFFFF:
                (length,), at, offset_size = struct.unpack_from(mark + "Q", head, 4), 12, 8
            self.end = offset + at + length
            (version,) = struct.unpack_from(mark + "H", head, at)
            at += 2
            word = "I" if offset_size == 4 else "Q"
            kind = 0
            if version >= 5:
                kind, address_size, abbreviations = struct.unpack_from(mark + "BB" + word, head, at)
                at += 2 + offset_size + {_SKELETON: 8, _SPLIT: 8, _TYPE: 8 + offset_size}.get(kind, 0)
            else:
                abbreviations, address_size = struct.unpack_from(mark + word + "B", head, at)
                at += 1 + offset_size
        except struct.error as error:
            raise FormatError("a unit's header is not whole", offset, INFO) from error
        if not 2 <= version <= 5 or address_size != 8:
            raise FormatError(f"a unit of version {version} with addresses of {address_size} bytes", offset, INFO)
        if self.end > sections.size(INFO):
            raise FormatError("a unit ends behind the section", offset, INFO)
        self.is_type = kind in (_TYPE, _SPLIT_TYPE)
        self.encoding = Encoding(sections.byteorder, version, address_size, offset_size)
        self.first = at
        """Offset of the first entry in the unit, in bytes."""
        self._abbreviations_offset = abbreviations

    @cached_property
    def _abbreviations(self) -> dict[int, Abbreviation]:
        return read_abbreviations(self.sections, self._abbreviations_offset, self.encoding)

    @cached_property
    def data(self) -> bytes:
        """The bytes of the unit, header included."""
        if self.end - self.offset > _MAX_UNIT:
            raise FormatError(f"a unit of {self.end - self.offset:,} bytes", self.offset, INFO)
        return self.sections.read(INFO, self.offset, self.end - self.offset)

    def entry(self, at: int, data: bytes | None = None) -> Entry | None:
        """Return the entry at an offset of the unit; ``None``: one that ends the children of another.

        :param data: what is read of the unit; ``None``: all.
        :raises FormatError: its kind is not known, or the unit ends.
        """
        code, values = read_uleb128(self.data if data is None else data, at)
        if not code:
            return None
        if code not in self._abbreviations:
            raise FormatError(f"abbreviation {code} is not known", self.offset + at, INFO)
        return Entry(at, self._abbreviations[code], values)

    def behind(self, entry: Entry) -> int:
        """Return the offset behind the values of an entry.

        :raises FormatError: a form is not known, or the unit ends.
        """
        if entry.abbreviation.size is not None:
            return entry.values + entry.abbreviation.size
        at, data, encoding = entry.values, self.data, self.encoding
        try:
            for _, form, _ in entry.abbreviation.attributes:
                at = forms.skip(form, encoding, data, at)
        except IndexError as error:
            raise FormatError("a unit ends within an entry", self.offset + entry.offset, INFO) from error
        return at

    def attributes(self, entry: Entry, wanted: frozenset[int], data: bytes | None = None) -> dict[int, Value]:
        """Return the values of attributes that are wanted and there.

        :raises FormatError: a form is not known, or the unit ends.
        """
        found: dict[int, Value] = {}
        at, encoding = entry.values, self.encoding
        data = self.data if data is None else data
        try:
            for name, form, implicit in entry.abbreviation.attributes:
                if name in wanted and (value := forms.value(form, implicit, encoding, data, at, self.offset)):
                    found[name] = value
                at = forms.skip(form, encoding, data, at)
        except IndexError as error:
            raise FormatError("a unit ends within an entry", self.offset + entry.offset, INFO) from error
        return found

    @cached_property
    def top(self) -> dict[int, Value]:
        """The values of the unit's own entry that are used here."""
        size = min(_TOP_SIZE, self.end - self.offset)
        data = self.sections.read(INFO, self.offset, size)
        try:
            return self._top(data)
        except FormatError:
            if size == self.end - self.offset:
                raise
            return self._top(self.data)

    def _top(self, data: bytes) -> dict[int, Value]:
        entry = self.entry(self.first, data)
        return self.attributes(entry, _OF_TOP, data) if entry is not None else {}

    def number(self, name: int) -> int | None:
        """Return a number of the unit's own entry; ``None``: it has none."""
        found = self.top.get(name)
        return found.number if found is not None else None

    @cached_property
    def base(self) -> int:
        """The address that ranges are relative to."""
        return self.address(self.top.get(AT_LOW_PC)) or 0

    @cached_property
    def ranges(self) -> list[tuple[int, int]]:
        """Start and end address (exclusive) of the unit's code; empty: not told."""
        return self.ranges_of(self.top)

    def ranges_of(self, values: dict[int, Value]) -> list[tuple[int, int]]:
        """Return the ranges of an entry.

        :raises FormatError: they are malformed.
        """
        if (found := values.get(AT_RANGES)) is not None:
            base = self.number(AT_RNGLISTS_BASE)
            return read_ranges(self.sections, self.encoding, found, self.base, base, self.indexed_address)
        low, high = self.address(values.get(AT_LOW_PC)), values.get(AT_HIGH_PC)
        if low is None or high is None:
            return []
        end = low + high.number if high.kind == forms.CONSTANT else self.address(high)
        return [(low, end)] if end is not None and end > low else []

    def address(self, value: Value | None) -> int | None:
        """Return an address; ``None``: the value is none.

        :raises FormatError: its index is not in ``.debug_addr``.
        """
        if value is None or value.kind not in (forms.ADDRESS, forms.INDEX):
            return None
        return value.number if value.kind == forms.ADDRESS else self.indexed_address(value.number)

    def indexed_address(self, index: int) -> int:
        """Return an address of ``.debug_addr``.

        :raises FormatError: there is none with this index.
        """
        base = self.number(AT_ADDR_BASE) or self.number(_GNU_ADDR_BASE) or 0
        size = self.encoding.address_size
        data = self.sections.read(".debug_addr", base + index * size, size)
        return int.from_bytes(data, self.encoding.byteorder)

    def text(self, value: Value | None) -> str:
        """Return a string; empty: the value is none.

        :raises FormatError: it is not in its section.
        """
        if value is None or value.kind != forms.STRING:
            return ""
        if value.section != ".debug_str_offsets":
            return self.sections.string(value.section, value.number)
        size = self.encoding.offset_size
        base = self.number(AT_STR_OFFSETS_BASE) or 0
        data = self.sections.read(value.section, base + value.number * size, size)
        return self.sections.string(".debug_str", int.from_bytes(data, self.encoding.byteorder))


_TOP_SIZE = 1024
_OF_TOP = frozenset(
    (
        *(AT_NAME, AT_STMT_LIST, AT_LOW_PC, AT_HIGH_PC, AT_COMP_DIR, AT_RANGES),
        *(AT_STR_OFFSETS_BASE, AT_ADDR_BASE, AT_RNGLISTS_BASE, _GNU_ADDR_BASE),
    )
)


def all_units(sections: DebugSections) -> Iterator[Unit]:
    """Yield the units of a file, up to one that is malformed."""
    offset = 0
    while offset < sections.size(INFO):
        try:
            unit = Unit(sections, offset)
        except FormatError:
            return
        yield unit
        offset = unit.end
