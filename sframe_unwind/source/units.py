"""Units of ``.debug_info`` and their entries (DWARF 5, 7.5)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property
from typing import Callable

from sframe_unwind.address import ADDRESS_MASK, WORD_SIZE, Range
from sframe_unwind.cfi.leb128 import read_uleb128
from sframe_unwind.errors import FormatError, counted
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.source import abbreviations as at_names
from sframe_unwind.source import forms
from sframe_unwind.source.abbreviations import Abbreviation, Abbreviations
from sframe_unwind.source.forms import Encoding, Value
from sframe_unwind.source.ranges import RangeLists
from sframe_unwind.source.sections import INFO, DebugSections, decoded

FindAbbreviations = Callable[[int, Encoding], Abbreviations]
"""``(offset, encoding)``: returns the abbreviations at an offset of their section, in bytes."""

_HEADER = 48
"""Number of bytes to read: the longest header has 40."""
_SKELETON, _SPLIT, _TYPE, _SPLIT_TYPE = 4, 5, 2, 6
_TOP = 1024
"""Number of bytes at the start of a unit that nearly always contain its own entry."""
_MAX_UNIT = 1 << 27
"""Maximum size of a unit in bytes; the unit of a program with link-time optimisation has tens of megabytes."""


class Entry(NamedTuple):
    """A debugging information entry."""

    at: int
    """Its offset in the unit, in bytes."""
    abbreviation: Abbreviation
    values: int
    """Offset of its values in the unit, in bytes."""


class Unit:
    """A unit.

    Unreadable parts raise :class:`FormatError`, or FileError if a section cannot be decompressed.

    :param offset: offset of the unit in ``.debug_info``, in bytes.
    :param find: finds its abbreviations.
    """

    def __init__(self, sections: DebugSections, offset: int, find: FindAbbreviations) -> None:
        self.sections = sections
        self.offset = offset
        mark, head = sections.mark, sections.read(INFO, offset, _HEADER)
        try:
            length, at, offset_size = unit_length(sections, INFO, offset)
            self.end = offset + at + length
            """Offset in the section of the first byte after it."""
            (version,) = struct.unpack_from(mark + "H", head, at)
            at, word, kind = at + 2, "I" if offset_size == 4 else "Q", 0
            if version >= 5:
                kind, address_size, position = struct.unpack_from(mark + "BB" + word, head, at)
                at += 2 + offset_size + {_SKELETON: 8, _SPLIT: 8, _TYPE: 8 + offset_size}.get(kind, 0)
            else:
                position, address_size = struct.unpack_from(mark + word + "B", head, at)
                at += 1 + offset_size
        except struct.error as error:
            raise FormatError("a unit's header is not whole", offset, INFO) from error
        if not 2 <= version <= 5 or address_size != WORD_SIZE:
            raise FormatError(
                f"a unit of version {version} with addresses of {counted(address_size, 'byte')}", offset, INFO
            )
        self.encoding = Encoding(sections.byteorder, version, offset_size)
        self.first = at
        """Offset of the first entry in the unit, in bytes."""
        self.has_code = kind not in (_TYPE, _SPLIT_TYPE)
        """Whether it describes code, not a type."""
        self.abbreviations = find(position, self.encoding)

    @cached_property
    def data(self) -> bytes:
        """The bytes of the unit, header included."""
        if self.end - self.offset > _MAX_UNIT:
            raise FormatError(f"a unit of {self.end - self.offset:,} bytes", self.offset, INFO)
        return self.sections.exactly(INFO, self.offset, self.end - self.offset)

    def entry(self, at: int) -> Entry:
        """Return the entry at an offset of the unit, in bytes; not one that ends a list of children."""
        code, values = read_uleb128(self.data, at)
        return Entry(at, self.abbreviations[code], values)

    def value(self, entry: Entry, name: int) -> Value | None:
        """Return the value of an attribute; ``None``: the entry does not have it."""
        return self._value(self.data, entry, name)

    def _value(self, data: bytes, entry: Entry, name: int) -> Value | None:
        attribute = entry.abbreviation.attributes.get(name)
        if attribute is None:
            return None
        form, before, step, implicit = attribute
        if form == forms.IMPLICIT_CONST:
            return Value(form, implicit)
        order = self.encoding.byteorder
        try:
            at = forms.end_of(data, entry.values, before, order)
            return Value(form, forms.number(data, at, form, step, order))
        except (IndexError, ValueError) as error:
            raise FormatError("a unit ends within an entry", self.offset + entry.at, INFO) from error

    @cached_property
    def _top(self) -> dict[int, Value | None]:
        """The values of the unit's own entry."""
        data = self.sections.read(INFO, self.offset, min(_TOP, self.end - self.offset))
        try:
            return self._top_in(data)
        except FormatError:
            return self._top_in(self.data)

    def _top_in(self, data: bytes) -> dict[int, Value | None]:
        code, values = read_uleb128(data, self.first)
        entry = Entry(self.first, self.abbreviations[code], values)
        return {name: self._value(data, entry, name) for name in entry.abbreviation.attributes}

    @property
    def top(self) -> Entry:
        """The unit's own entry."""
        return self.entry(self.first)

    def of_top(self, name: int) -> int | None:
        """Return the value of an attribute of the unit's own entry as a number; ``None``: it does not have it."""
        found = self._top.get(name)
        return found.number if found is not None else None

    @cached_property
    def folder(self) -> str:
        """The folder in which the compiler ran; empty: not known."""
        return self._text(self._top.get(at_names.AT_COMP_DIR))

    def name(self, entry: Entry) -> str:
        """Return the linkage name of an entry, or its name; empty: it has none itself."""
        names = at_names.AT_LINKAGE_NAME, at_names.AT_NAME
        return next(filter(None, (self._text(self.value(entry, name)) for name in names)), "")

    def number(self, entry: Entry, name: int) -> int:
        """Return the value of an attribute as a number; 0: the entry does not have it."""
        found = self.value(entry, name)
        return found.number if found is not None else 0

    def reference(self, entry: Entry, name: int) -> int | None:
        """Return the offset in ``.debug_info`` to which an attribute refers.

        ``None``: the entry does not have it, or it refers to another file or a type.
        """
        found = self.value(entry, name)
        if found is None:
            return None
        if found.form in forms.UNIT_REFERENCES:
            return self.offset + found.number
        return found.number if found.form == forms.REF_ADDR else None

    @cached_property
    def ranges(self) -> list[Range]:
        """Start and end address (exclusive) of the unit's code; empty: not known."""
        return self._ranges(*map(self._top.get, (at_names.AT_RANGES, at_names.AT_LOW_PC, at_names.AT_HIGH_PC)))

    def ranges_of(self, entry: Entry) -> list[Range]:
        """Return start and end address (exclusive) of the code of an entry, without empty ranges."""
        listed = self.value(entry, at_names.AT_RANGES)
        if listed is not None:
            return self._ranges(listed, None, None)
        return self._ranges(None, self.value(entry, at_names.AT_LOW_PC), self.value(entry, at_names.AT_HIGH_PC))

    def _ranges(self, listed: Value | None, low: Value | None, high: Value | None) -> list[Range]:
        if listed is not None:
            return self._lists.at(listed.number, listed.form == forms.RNGLISTX)
        start, end = self._address(low), self._address(high)
        if start is None or high is None:
            return []
        if end is None:
            end = start + high.number & ADDRESS_MASK
        return [(start, end)] if start < end else []

    @cached_property
    def _lists(self) -> RangeLists:
        base = self._address(self._top.get(at_names.AT_LOW_PC)) or 0
        lists = self.of_top(at_names.AT_RNGLISTS_BASE) or 0
        return RangeLists(self.sections, self.encoding, base, lists, self._indexed_address)

    def _address(self, value: Value | None) -> int | None:
        """Return an address; ``None``: the value is not an address."""
        if value is None or value.form == forms.ADDR:
            return value and value.number
        return self._indexed_address(value.number) if value.form in forms.ADDRESS_INDEXES else None

    def _indexed_address(self, index: int) -> int:
        base = self.of_top(at_names.AT_ADDR_BASE) or 0
        data = self.sections.exactly(".debug_addr", base + index * WORD_SIZE, WORD_SIZE)
        return int.from_bytes(data, self.encoding.byteorder)

    def _text(self, value: Value | None) -> str:
        """Return a string; empty: there is none, or it is in another file."""
        if value is None:
            return ""
        if value.form == forms.INLINE_STRING:
            return decoded(self.data[value.number :].partition(b"\0")[0])
        if value.form in forms.STRING_INDEXES:
            size = self.encoding.offset_size
            base = self.of_top(at_names.AT_STR_OFFSETS_BASE) or 0
            data = self.sections.exactly(".debug_str_offsets", base + value.number * size, size)
            return self.sections.string(".debug_str", int.from_bytes(data, self.encoding.byteorder))
        section = forms.STRING_OFFSETS.get(value.form)
        return self.sections.string(section, value.number) if section is not None else ""


def unit_length(sections: DebugSections, section: str, offset: int) -> tuple[int, int, int]:
    """Decode the length at an offset of a section, in bytes (DWARF 5, 7.4).

    Return the length, the size of the length itself, and the size of offsets in the data: 4, or 8 in the 64-bit format.

    :raises FormatError: the section ends within the length, or within the data of this length.
    """
    data, order = sections.read(section, offset, 12), sections.byteorder
    length, size, offset_size = int.from_bytes(data[:4], order), 4, 4
    if length == 0xFFFFFFFF:
        length, size, offset_size = int.from_bytes(data[4:], order), 12, 8
    if len(data) < size:
        raise FormatError("the section ends within the length of a unit", offset, section)
    return length, size, offset_size


def unit_offsets(sections: DebugSections) -> Iterator[int]:
    """Yield the offsets of all units of a file; units after one of malformed length are not found."""
    offset = 0
    while sections.read(INFO, offset, 1):
        yield offset
        length, size, _ = unit_length(sections, INFO, offset)
        offset += size + length
