"""Finds the landing pads of a file: the places where execution continues when an exception passes through a call.

FDEs refer to the tables of landing pads, for C++ and for the clean-up functions of C.  ``.eh_frame`` is specified in
Linux Standard Base Core 5.0, 10.6; the format of the tables is that of GCC, which Clang follows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Callable

from sframe_unwind.address import ADDRESS_MASK, ByteOrder
from sframe_unwind.cfi.args_size import ArgsSize, args_sizes
from sframe_unwind.cfi.constants import PE_ABSPTR, PE_FORMAT, PE_INDIRECT, PE_OMIT
from sframe_unwind.cfi.leb128 import read_sleb128, read_uleb128
from sframe_unwind.cfi.pointers import Bases, check_supported, origin, read_number
from sframe_unwind.code.image.code_image import CodeImage
from sframe_unwind.errors import FormatError
from sframe_unwind.named_tuple import NamedTuple

_MAX_TABLE = 1 << 20
"""Maximum number of bytes of a table that are read."""
_ID = 4
"""Size of the id or CIE pointer at the start of a record's body, in bytes."""


class LandingPad(NamedTuple):
    """The place where execution may continue when an exception passes through a call."""

    address: int
    popped: int
    """Size in bytes of the call's arguments on the stack, which the unwinder removes."""


LandingPads = Callable[[int], Iterable[LandingPad]]
"""Returns the landing pads of a call, by an address within the call instruction: the return address minus 1."""


class _CallSite(NamedTuple):
    """A range of addresses with the landing pad of the calls in it."""

    start: int
    end: int
    landing_pad: int


class _Function(NamedTuple):
    """A function with a table of call sites."""

    start: int
    end: int
    table: int
    """Address of the table."""
    args_sizes: list[ArgsSize]

    def popped(self, pc: int) -> int:
        """Return the size in bytes of the arguments that are on the stack at an address."""
        at = bisect_right(self.args_sizes, (pc - self.start, 1 << 64))
        return self.args_sizes[at - 1].size if at else 0


class ExceptionTables:
    """The landing pads of a file.

    :param eh_frame: contents of ``.eh_frame``, relocated.
    :param address: address of ``.eh_frame``.
    :param image: the file's sections, from which the tables are read.
    """

    def __init__(self, eh_frame: bytes, address: int, byteorder: ByteOrder, image: CodeImage) -> None:
        self._image = image
        self._order = byteorder
        self._functions = sorted(_Records(eh_frame, address, self._order).functions())
        self._starts = [function.start for function in self._functions]
        self._known: dict[int, list[_CallSite]] = {}

    def landing_pads(self, pc: int) -> list[LandingPad]:
        """Return the landing pads of a call.

        :param pc: an address within the call instruction, such as the return address minus 1.
        """
        at = bisect_right(self._starts, pc) - 1
        if at < 0:
            return []
        function = self._functions[at]
        if pc >= function.end:
            return []
        if function.table not in self._known:
            self._known[function.table] = list(self._call_sites(function))
        sites = [site for site in self._known[function.table] if site.start <= pc < site.end]
        return [LandingPad(site.landing_pad, function.popped(pc)) for site in sites]

    def _call_sites(self, function: _Function) -> Iterator[_CallSite]:
        section = self._image.section(function.table)
        if section is None:
            return
        offset = function.table - section.start
        reader = _Reader(section.contents[offset : offset + _MAX_TABLE], function.table, self._order)
        try:
            yield from _read_call_sites(reader, function.start)
        except (FormatError, IndexError):
            return  # the table is malformed or ends too early: the call sites before that place are used


def _read_call_sites(reader: _Reader, function: int) -> Iterator[_CallSite]:
    encoding = reader.byte()
    base = function if encoding == PE_OMIT else reader.pointer(encoding)
    if reader.byte() != PE_OMIT:
        reader.uleb()
    encoding = reader.byte()
    end = reader.uleb() + reader.at
    while reader.at < end:
        start, size, pad = reader.pointer(encoding), reader.pointer(encoding), reader.pointer(encoding)
        reader.uleb()
        if pad and start is not None and size is not None and base is not None:
            yield _CallSite(function + start, function + start + size, base + pad)


class _Reader:
    """Reads consecutive numbers and pointers.

    :param address: address of the data in memory.
    """

    def __init__(self, data: bytes, address: int, byteorder: ByteOrder, at: int = 0) -> None:
        self.at = at
        self._data = data
        self._address = address
        self._bases = Bases(byteorder)

    def byte(self) -> int:
        value = self._data[self.at]
        self.at += 1
        return value

    def uleb(self) -> int:
        value, self.at = read_uleb128(self._data, self.at)
        return value

    def sleb(self) -> int:
        value, self.at = read_sleb128(self._data, self.at)
        return value

    def pointer(self, encoding: int) -> int | None:
        """Return the next pointer; 0: it is null; ``None``: the encoding has no pointer, or only its address."""
        if encoding == PE_OMIT:
            return None
        check_supported(encoding & ~PE_INDIRECT, self._bases)
        place = self._address + self.at
        value, self.at = read_number(self._data, self.at, encoding, self._bases.byteorder)
        if not value:
            return 0
        return None if encoding & PE_INDIRECT else value + origin(encoding, place, self._bases) & ADDRESS_MASK


class _Common(NamedTuple):
    """The fields of a CIE that are needed to read its FDEs."""

    factor: int
    """Code alignment factor."""
    encoding: int
    """Encoding of the addresses of functions."""
    table_encoding: int
    """Encoding of the address of a table of call sites."""


class _Records:
    """Reads the records of ``.eh_frame``, as far as they lead to tables of call sites."""

    def __init__(self, data: bytes, address: int, byteorder: ByteOrder) -> None:
        self._data = data
        self._address = address
        self._order = byteorder
        self._commons: dict[int, _Common | None] = {}

    def functions(self) -> Iterator[_Function]:
        """Yield the functions with a table; those with unreadable records are left out."""
        data, offset = self._data, 0
        while offset + 2 * _ID <= len(data):
            size = int.from_bytes(data[offset : offset + _ID], self._order)
            body = offset + _ID
            if size in (0, 0xFFFFFFFF) or body + size > len(data):
                return
            pointer = int.from_bytes(data[body : body + _ID], self._order)
            common = self._common(body - pointer) if pointer else None
            if common is not None and common.table_encoding != PE_OMIT:
                try:
                    found = self._function(body + _ID, body + size, common)
                except (FormatError, IndexError):
                    found = None
                if found is not None:
                    yield found
            offset = body + size

    def _common(self, offset: int) -> _Common | None:
        if offset not in self._commons:
            try:
                self._commons[offset] = self._read_common(offset + 2 * _ID)
            except (FormatError, IndexError, ValueError):
                self._commons[offset] = None
        return self._commons[offset]

    def _read_common(self, offset: int) -> _Common | None:
        end = self._data.index(b"\0", offset + 1)
        letters = self._data[offset + 1 : end].decode("latin-1")
        if not letters.startswith("z"):
            return None
        reader = _Reader(self._data, self._address, self._order, end + 1)
        factor = reader.uleb()
        reader.sleb()
        if self._data[offset] == 1:  # the version
            reader.byte()
        else:
            reader.uleb()
        reader.uleb()
        encoding, table_encoding = PE_ABSPTR, PE_OMIT
        for letter in letters[1:]:
            if letter == "R":
                encoding = reader.byte()
            elif letter == "L":
                table_encoding = reader.byte()
            elif letter == "P":
                reader.pointer(reader.byte())
            elif letter not in "SBG":
                return None
        return _Common(factor, encoding, table_encoding)

    def _function(self, offset: int, end: int, common: _Common) -> _Function | None:
        reader = _Reader(self._data, self._address, self._order, offset)
        start, size = reader.pointer(common.encoding), reader.pointer(common.encoding & PE_FORMAT)
        length = reader.uleb()
        instructions = reader.at + length
        table = reader.pointer(common.table_encoding)
        if start is None or size is None or not table:
            return None
        sizes = args_sizes(self._data[instructions:end], common.factor, self._order)
        return _Function(start, start + size, table, sizes)
