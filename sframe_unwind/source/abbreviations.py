"""Abbreviations: which attributes the entries of a unit have (DWARF 5, 7.5.3)."""

from __future__ import annotations

from typing import NamedTuple

from sframe_unwind.cfi.leb128 import read_sleb128, read_uleb128
from sframe_unwind.errors import FormatError
from sframe_unwind.source.forms import Encoding, size_of
from sframe_unwind.source.sections import DebugSections

_SECTION = ".debug_abbrev"
_IMPLICIT = 0x21
_CHUNK = 1 << 14
_MAX = 1 << 22
"""Bytes of the abbreviations of one unit."""


class Attribute(NamedTuple):
    """One attribute of a kind of entry."""

    name: int
    """``DW_AT_*``."""
    form: int
    """``DW_FORM_*``."""
    implicit: int
    """The value, where it stands here."""


class Abbreviation(NamedTuple):
    """A kind of entry."""

    tag: int
    """``DW_TAG_*``."""
    has_children: bool
    attributes: tuple[Attribute, ...]
    size: int | None
    """Of all values, in bytes; ``None``: it depends on them."""


def read_abbreviations(sections: DebugSections, offset: int, encoding: Encoding) -> dict[int, Abbreviation]:
    """Return the abbreviations at an offset of ``.debug_abbrev``, by code.

    :raises FormatError: they are malformed.
    """
    size = _CHUNK
    while True:
        size = min(size, max(sections.size(_SECTION) - offset, 0))
        data = sections.read(_SECTION, offset, size)
        try:
            return _decode(data, encoding)
        except (FormatError, IndexError) as error:
            if size >= min(sections.size(_SECTION) - offset, _MAX):
                raise FormatError("the abbreviations do not end", offset, _SECTION) from error
        size *= 4  # there is more than was read


def _decode(data: bytes, encoding: Encoding) -> dict[int, Abbreviation]:
    found: dict[int, Abbreviation] = {}
    at = 0
    while True:
        code, at = read_uleb128(data, at)
        if not code:
            return found
        tag, at = read_uleb128(data, at)
        has_children = data[at] != 0
        at += 1
        attributes = []
        while True:
            name, at = read_uleb128(data, at)
            form, at = read_uleb128(data, at)
            if not name and not form:
                break
            implicit = 0
            if form == _IMPLICIT:
                implicit, at = read_sleb128(data, at)
            attributes.append(Attribute(name, form, implicit))
        sizes = [size_of(attribute.form, encoding) for attribute in attributes]
        size = None if None in sizes else sum(size for size in sizes if size is not None)
        found[code] = Abbreviation(tag, has_children, tuple(attributes), size)
