"""Line number programs (DWARF 5, 6.2): the file and the line of each address.

A program is run up to the sequence with the requested address, and its rows are kept as numbers.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from functools import cached_property
from typing import Callable

from sframe_unwind.address import WORD_SIZE
from sframe_unwind.cfi.leb128 import read_uleb128
from sframe_unwind.errors import FormatError, SFrameError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.source import forms
from sframe_unwind.source.forms import Encoding
from sframe_unwind.source.sections import LINE, DebugSections, decoded
from sframe_unwind.source.units import unit_length

_MAX_PROGRAM = 1 << 23
"""Maximum size in bytes; each can be a row of 16.  sqlite3.c, one of the longest files, has a program of 500,000."""
_PATH, _DIRECTORY = 1, 2
"""``DW_LNCT_path``, ``DW_LNCT_directory_index``."""
_NOWHERE = 0, 0
_LINE_BITS = 32
_LINE = (1 << _LINE_BITS) - 1
_MAX_NUMBER = 63
"""Maximum number of bits of a number before its last byte."""

_Names = list[tuple[str, int]]
"""Names, and the number of the directory of each."""


class _Sequence(NamedTuple):
    """Rows of ascending addresses."""

    end: int
    """End address (exclusive)."""
    starts: array[int]
    """The address of each row."""
    places: array[int]
    """Number of the file, and the line in the lower :data:`_LINE_BITS`."""


class _Opcodes(NamedTuple):
    """The encoding of the bytes of a program."""

    minimum: int
    """Length of an instruction, in bytes."""
    first_special: int
    lengths: bytes
    """The number of arguments of each standard opcode."""
    addresses: list[int]
    """The number that each special opcode adds to the address."""
    lines: list[int]
    """The number that it adds to the line."""


class LineProgram:
    """The lines of a unit.

    Unreadable parts raise :class:`FormatError`, or FileError if a section cannot be decompressed.

    :param offset: offset of the program in ``.debug_line``, in bytes.
    :param folder: folder in which the compiler ran.
    :param lowest: the lowest address of the unit's code.  Sequences that begin below it belong to functions that the
        linker has discarded.
    """

    def __init__(self, sections: DebugSections, offset: int, folder: str, lowest: int) -> None:
        self._sections = sections
        self._offset = offset
        self._folder = folder
        self._lowest = lowest
        length, at, offset_size = unit_length(sections, LINE, offset)
        if length > _MAX_PROGRAM:
            raise FormatError(f"a line number program of {length:,} bytes", offset, LINE)
        self._data = sections.exactly(LINE, offset, at + length)
        mark = sections.mark
        try:
            (version,) = struct.unpack_from(mark + "H", self._data, at)
            if not 2 <= version <= 5:
                raise FormatError(f"a line number program of version {version}", offset, LINE)
            self._encoding = Encoding(sections.byteorder, version, offset_size)
            at += 4 if version >= 5 else 2  # from version 5 on, the sizes of addresses and of segments are here
            (size,) = struct.unpack_from(mark + ("I" if offset_size == 4 else "Q"), self._data, at)
            at += offset_size
            self._first = at + size
            self._names_at = self._read_opcodes(at)
        except struct.error as error:
            raise FormatError("the header of a line number program is not whole", offset, LINE) from error
        self._sequences: list[_Sequence] = []
        self._left = iter(self._data[self._first :])

    def _read_opcodes(self, at: int) -> int:
        """Read the part of the header that describes opcodes; return the offset after it."""
        # From version 4 on there is also the number of operations in an instruction: 1 on the machines of SFrame.
        layout = "BxBbBB" if self._encoding.version >= 4 else "BBbBB"
        minimum, statement, line_base, line_range, first = struct.unpack_from(layout, self._data, at)
        del statement  # rows are taken whether or not they begin a statement
        if not line_range or not first:
            raise FormatError("a line number program without opcodes", self._offset, LINE)
        at += struct.calcsize(layout)
        if at + first - 1 > len(self._data):
            raise FormatError("a line number program that ends within its header", self._offset, LINE)
        special = [divmod(opcode - first, line_range) for opcode in range(256)]
        addresses, lines = [minimum * distance for distance, _ in special], [line_base + line for _, line in special]
        self._opcodes = _Opcodes(minimum, first, b"\0" + self._data[at : at + first - 1], addresses, lines)
        return int(at + first - 1)

    def at(self, address: int) -> tuple[int, int]:
        """Return the number of the file and the line of an address; ``(0, 0)``: the program has none.

        Of several rows for one address, the last one counts, as in addr2line and elfutils; GDB takes the last one that
        begins a statement.
        """
        found = next((one for one in self._sequences if one.starts[0] <= address < one.end), None)
        while found is None:
            sequence = self._next_sequence()
            if sequence is None:
                return _NOWHERE
            self._sequences.append(sequence)
            if sequence.starts[0] <= address < sequence.end:
                found = sequence
        place: int = found.places[bisect_right(found.starts, address) - 1]
        return place >> _LINE_BITS, place & _LINE

    def _next_sequence(self) -> _Sequence | None:
        """Run the program to the end of the next sequence with code; ``None``: there is none."""
        take = self._left.__next__
        while (first := next(self._left, None)) is not None:
            try:
                sequence = self._run(first, take)
            except (StopIteration, OverflowError, FormatError) as error:
                self._left = iter(b"")  # the following bytes may not be instructions
                raise FormatError(f"a malformed line number program: {error}", self._offset, LINE) from error
            if sequence is not None and sequence.starts[0] >= self._lowest:
                return sequence
        return None

    def _run(self, opcode: int, take: Callable[[], int]) -> _Sequence | None:
        """Run one sequence; ``None``: it has no code.

        :param opcode: the first opcode of the sequence.
        :param take: returns the next byte of the program.
        :raises StopIteration: the program ends within the sequence.
        :raises OverflowError: an address or a number of a file is too large.
        :raises FormatError: a number is too long.
        """
        minimum, first_special, lengths, addresses, lines = self._opcodes
        address, file, line, is_sorted = 0, 1 << _LINE_BITS, 1, True
        starts, places = array("Q"), array("Q")
        add_start, add_place = starts.append, places.append
        while True:
            if opcode >= first_special:
                address += addresses[opcode]
                line += lines[opcode]
                add_start(address)
                add_place(file | line & _LINE)
            elif opcode == 5:  # DW_LNS_set_column
                while take() > 0x7F:
                    pass
            elif opcode == 6:  # DW_LNS_negate_stmt
                pass
            elif opcode == 1:  # DW_LNS_copy
                add_start(address)
                add_place(file | line & _LINE)
            elif opcode == 3:  # DW_LNS_advance_line
                line += _leb128(take, signed=True)
            elif opcode == 4:  # DW_LNS_set_file
                file = _leb128(take) << _LINE_BITS
            elif opcode == 2:  # DW_LNS_advance_pc
                address += _leb128(take) * minimum
            elif opcode == 8:  # DW_LNS_const_add_pc
                address += addresses[255]
            elif opcode == 9:  # DW_LNS_fixed_advance_pc
                address += int.from_bytes((take(), take()), self._encoding.byteorder)
            elif opcode:
                for _ in range(lengths[opcode]):
                    _leb128(take)
            else:
                length = _leb128(take)
                kind = take() if length else 0
                if kind == 1:  # DW_LNE_end_sequence
                    is_code = bool(starts) and address > starts[0]
                    return _sequence(address, starts, places, is_sorted) if is_code else None
                rest = [take() for _ in range(length - 1)]
                if kind == 2:  # DW_LNE_set_address
                    before, address = address, int.from_bytes(rest[:WORD_SIZE], self._encoding.byteorder)
                    is_sorted = is_sorted and before <= address
            opcode = take()

    def path(self, number: int) -> str:
        """Return the path of a file; empty: it is not known."""
        index = number if self._counts_from_0 else number - 1
        files = self._names[1]
        if not 0 <= index < len(files):
            return ""
        name, directory = files[index]
        if name.startswith("/"):
            return name
        folder = self._directory(directory)
        return f"{folder}/{name}" if folder else name

    def _directory(self, number: int) -> str:
        if not self._counts_from_0:
            if not number:
                return self._folder
            number -= 1
        directories = self._names[0]
        found = directories[number][0] if 0 <= number < len(directories) else ""
        if not found:
            return self._folder
        if found.startswith("/") or not self._folder or found == self._folder:
            return found
        return f"{self._folder}/{found}"

    @property
    def _counts_from_0(self) -> bool:
        """Whether files and directories are numbered from 0."""
        return self._encoding.version >= 5

    @cached_property
    def _names(self) -> tuple[_Names, _Names]:
        """The directories and the files; empty: they cannot be read."""
        try:
            return self._new_names() if self._counts_from_0 else self._old_names()
        except (LookupError, ValueError, SFrameError):
            return [], []

    def _old_names(self) -> tuple[_Names, _Names]:
        """Decode the names of a program before version 5.

        :raises IndexError, ValueError, FormatError: they are malformed.
        """
        at, found = self._names_at, []
        for numbers in (0, 3):  # a file has its directory, a time and a size
            names = []
            while self._data[at]:
                end = self._data.index(0, at)
                name, directory = decoded(self._data[at:end]), 0
                at = end + 1
                if numbers:
                    directory, at = read_uleb128(self._data, at)
                    at = forms.end_of(self._data, at, [forms.LEB128] * (numbers - 1), self._encoding.byteorder)
                names.append((name, directory))
            found.append(names)
            at += 1
        return found[0], found[1]

    def _new_names(self) -> tuple[_Names, _Names]:
        """Decode the names of a program of version 5.

        :raises IndexError, ValueError, FormatError: they are malformed.
        :raises FileError: the section of a name cannot be decompressed.
        """
        directories, at = self._list(self._names_at)
        return directories, self._list(at)[0]

    def _list(self, at: int) -> tuple[_Names, int]:
        """Decode a list of names; return it, and the offset after it."""
        data, order = self._data, self._encoding.byteorder
        kinds, count, at = [], data[at], at + 1
        for _ in range(count):
            kind, at = read_uleb128(data, at)
            form, at = read_uleb128(data, at)
            kinds.append((kind, form, forms.steps_of(self._encoding)[form]))
        count, at = read_uleb128(data, at)
        if not any(step for _, _, step in kinds):
            count = 0  # names of size 0, whose number can be anything
        found = []
        for _ in range(count):
            name, directory = "", 0
            for kind, form, step in kinds:
                if kind in (_PATH, _DIRECTORY):
                    value = forms.number(data, at, form, step, order)
                    name, directory = (self._name(form, value), directory) if kind == _PATH else (name, value)
                at = forms.end_of(data, at, (step,), order)
            if at > len(data):
                raise FormatError("the data ends within the names", self._offset, LINE)
            found.append((name, directory))
        return found, at

    def _name(self, form: int, value: int) -> str:
        if form == forms.INLINE_STRING:
            return decoded(self._data[value : self._data.index(0, value)])
        section = forms.STRING_OFFSETS.get(form)
        return self._sections.string(section, value) if section is not None else ""


def _sequence(end: int, starts: array[int], places: array[int], is_sorted: bool) -> _Sequence:
    if is_sorted:
        return _Sequence(end, starts, places)
    order = sorted(range(len(starts)), key=starts.__getitem__)  # rows with one address keep their order
    return _Sequence(end, array("Q", map(starts.__getitem__, order)), array("Q", map(places.__getitem__, order)))


def _leb128(take: Callable[[], int], signed: bool = False) -> int:
    """Decode a LEB128 number.

    :param take: returns the next byte.
    :raises FormatError: it is too long.
    """
    byte = take()
    value, shift = byte & 0x7F, 7
    while byte > 0x7F:
        if shift > _MAX_NUMBER:
            raise FormatError("LEB128 number of more than 64 bits", section=LINE)
        byte = take()
        value |= (byte & 0x7F) << shift
        shift += 7
    return value - (1 << shift) if signed and byte & 0x40 else value
