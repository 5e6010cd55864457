"""Abbreviations: the attributes of the entries of a unit (DWARF 5, 7.5.3)."""

from __future__ import annotations

from collections.abc import Mapping

from sframe_unwind.cfi.leb128 import read_sleb128, read_uleb128
from sframe_unwind.errors import FormatError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.source.forms import IMPLICIT_CONST, UNIT_REFERENCES, Encoding, append, steps_of
from sframe_unwind.source.sections import DebugSections

AT_SIBLING, AT_NAME, AT_STMT_LIST, AT_LOW_PC, AT_HIGH_PC, AT_COMP_DIR = 0x01, 0x03, 0x10, 0x11, 0x12, 0x1B
AT_ABSTRACT_ORIGIN, AT_SPECIFICATION, AT_RANGES, AT_CALL_FILE, AT_CALL_LINE = 0x31, 0x47, 0x55, 0x58, 0x59
AT_LINKAGE_NAME, AT_STR_OFFSETS_BASE, AT_ADDR_BASE, AT_RNGLISTS_BASE = 0x6E, 0x72, 0x73, 0x74
AT_DWO_NAME = 0x76
"""The file with the rest of the unit."""
_SAME = {0x2007: AT_LINKAGE_NAME, 0x2130: AT_DWO_NAME, 0x2133: AT_ADDR_BASE}
"""``DW_AT_MIPS_linkage_name``, ``DW_AT_GNU_dwo_name`` and ``DW_AT_GNU_addr_base``, older names of three of these."""
_READ = frozenset(
    (
        AT_DWO_NAME,
        *(AT_NAME, AT_STMT_LIST, AT_LOW_PC, AT_HIGH_PC, AT_COMP_DIR, AT_ABSTRACT_ORIGIN, AT_SPECIFICATION),
        *(AT_RANGES, AT_CALL_FILE, AT_CALL_LINE, AT_LINKAGE_NAME, AT_STR_OFFSETS_BASE, AT_ADDR_BASE, AT_RNGLISTS_BASE),
    )
)

_SECTION = ".debug_abbrev"
_CHUNK = 1 << 12
_MAX = 1 << 22
"""Maximum size of the abbreviations of one unit, in bytes."""


class Attribute(NamedTuple):
    """The place of an attribute in the entries."""

    form: int
    """``DW_FORM_*``."""
    before: tuple[int, ...]
    """Steps over the values before it; see :mod:`sframe_unwind.source.forms`."""
    step: int
    """The step over its own value."""
    implicit: int
    """The value of ``DW_FORM_implicit_const``, which is in the abbreviation; otherwise 0."""


class Abbreviation(NamedTuple):
    """A kind of entry."""

    tag: int
    """``DW_TAG_*``."""
    has_children: bool
    steps: tuple[int, ...]
    """Steps over all values."""
    sibling: int
    """Size in bytes of the reference to the next sibling, if it is the last value and has a fixed size; otherwise 0."""
    attributes: Mapping[int, Attribute]
    """The attributes that are read, by ``DW_AT_*``."""

    @property
    def has_code(self) -> bool:
        """Whether its entries have addresses."""
        return AT_LOW_PC in self.attributes or AT_RANGES in self.attributes


class Abbreviations(dict[int, Abbreviation]):
    """The abbreviations of a unit by their codes, decoded as far as they are needed.

    An unknown code raises :class:`FormatError`, as malformed abbreviations do; a section that cannot be decompressed
    raises FileError.

    :param offset: their offset in ``.debug_abbrev``, in bytes.
    """

    def __init__(self, sections: DebugSections, offset: int, encoding: Encoding) -> None:
        super().__init__()
        self._sections = sections
        self._offset = offset
        self._steps = steps_of(encoding)
        self._data = b""
        self._at: int | None = 0
        """Offset of the next abbreviation; ``None``: there are no more."""

    def __missing__(self, code: int) -> Abbreviation:
        while self._at is not None:
            try:
                found, self._at = self._decode(self._at)
            except (FormatError, IndexError) as error:
                if not self._extend():
                    raise FormatError(f"malformed abbreviations: {error}", self._offset, _SECTION) from error
                continue
            if found == code:
                return self[code]
        raise FormatError(f"there is no abbreviation {code}", self._offset, _SECTION)

    def _extend(self) -> bool:
        """Read more of the section; return whether there is more."""
        size = max(len(self._data) * 4, _CHUNK)
        data = self._sections.read(_SECTION, self._offset, size) if size <= _MAX else b""
        is_more = len(data) > len(self._data)
        if is_more:
            self._data = data
        return is_more

    def _decode(self, at: int) -> tuple[int, int | None]:
        """Decode the abbreviation at an offset; return its code, and the offset of the next.

        :raises FormatError: the data ends within it, or it has an unknown form.
        :raises IndexError: the data ends within it.
        """
        data = self._data
        code, at = read_uleb128(data, at)
        if not code:
            return 0, None
        tag, at = read_uleb128(data, at)
        has_children = data[at] != 0
        at += 1
        steps: list[int] = []
        sibling = 0
        attributes: dict[int, Attribute] = {}
        while True:
            name, at = read_uleb128(data, at)
            form, at = read_uleb128(data, at)
            if not name and not form:
                break
            implicit = 0
            if form == IMPLICIT_CONST:
                implicit, at = read_sleb128(data, at)
            step = self._steps.get(form)
            if step is None:
                raise FormatError(f"form {form:#x} is not known")
            name = _SAME.get(name, name)
            if name in _READ:
                attributes.setdefault(name, Attribute(form, tuple(steps), step, implicit))
            append(steps, step)
            sibling = step if name == AT_SIBLING and form in UNIT_REFERENCES else 0
        self.setdefault(code, Abbreviation(tag, has_children, tuple(steps), max(sibling, 0), attributes))
        return code, at
