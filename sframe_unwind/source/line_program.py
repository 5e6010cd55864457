"""Line number programs (DWARF 5, 6.2): which line of which file each address is of."""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import NamedTuple

from sframe_unwind.cfi.leb128 import read_sleb128, read_uleb128
from sframe_unwind.errors import FormatError
from sframe_unwind.memory import STRUCT_MARKS
from sframe_unwind.source import forms
from sframe_unwind.source.forms import Encoding
from sframe_unwind.source.sections import DebugSections

_SECTION = ".debug_line"
_MAX_PROGRAM = 1 << 25
"""Bytes."""
_MAX_NAMES = 1 << 16
"""Directories or files of a unit."""
_PATH, _DIRECTORY = 1, 2
"""``DW_LNCT_path``, ``DW_LNCT_directory_index``."""


class Row(NamedTuple):
    """What a program says of the addresses from one on."""

    address: int
    file: int
    line: int
    is_statement: bool


class _Sequence(NamedTuple):
    """Rows of ascending addresses."""

    starts: list[int]
    """Their addresses."""
    rows: list[Row]
    end: int
    """End address (exclusive)."""


class _Header(NamedTuple):
    minimum: int
    """Length of an instruction, in bytes."""
    default_is_statement: bool
    line_base: int
    line_range: int
    opcode_base: int
    lengths: bytes
    """How many arguments each standard opcode has."""


class LineTable:
    """The lines of one unit.

    :param offset: of its program in ``.debug_line``, in bytes.
    :param folder: in which the compiler ran.
    :param encoding: of the unit.
    :raises FormatError: the program is malformed.
    """

    def __init__(self, sections: DebugSections, offset: int, folder: str, encoding: Encoding) -> None:
        self._sections = sections
        self._folder = folder
        self._order = encoding.byteorder
        mark = STRUCT_MARKS[self._order]
        left = max(sections.size(_SECTION) - offset, 0)
        try:
            head = sections.read(_SECTION, offset, min(16, left))
            (length,), at, offset_size = struct.unpack_from(mark + "I", head), 4, 4
            if length == 0xFFFFFFFF:
                (length,), at, offset_size = struct.unpack_from(mark + "Q", head, 4), 12, 8
            if length > _MAX_PROGRAM:
                raise FormatError(f"a line number program of {length:,} bytes", offset, _SECTION)
            self._data = sections.read(_SECTION, offset, at + length)
            (version,) = struct.unpack_from(mark + "H", self._data, at)
            if not 2 <= version <= 5:
                raise FormatError(f"a line number program of version {version}", offset, _SECTION)
            self._encoding = Encoding(self._order, version, 8, offset_size)
            at += 4 if version >= 5 else 2
            (size,) = struct.unpack_from(mark + ("I" if offset_size == 4 else "Q"), self._data, at)
            at += offset_size
            first = at + size
            at = self._read_header(at)
            self._directories: list[str] = []
            self._files: list[tuple[str, int]] = []
            (self._read_names if version >= 5 else self._read_old_names)(at)
            self._sequences = sorted(self._run(first), key=lambda sequence: sequence.starts[0])
        except (struct.error, IndexError) as error:
            raise FormatError("the data ends within a line number program", offset, _SECTION) from error
        self._starts = [sequence.starts[0] for sequence in self._sequences]

    def at(self, address: int) -> Row | None:
        """Return the row for an address; ``None``: the program has none."""
        number = bisect_right(self._starts, address) - 1
        if number < 0 or address >= self._sequences[number].end:
            return None
        starts, rows, _ = self._sequences[number]
        at = bisect_right(starts, address) - 1
        row = rows[at]
        # As GDB has it: of several rows for one address the last one counts, or the last one that begins a statement.
        while not rows[at].is_statement and at and rows[at - 1].address == row.address:
            at -= 1
        return rows[at] if rows[at].is_statement else row

    def path(self, number: int) -> str:
        """Return the path of a file; empty: it is not known."""
        index = number if self._encoding.version >= 5 else number - 1
        if not 0 <= index < len(self._files):
            return ""
        name, directory = self._files[index]
        if name.startswith("/"):
            return name
        folder = self._directory(directory)
        return f"{folder}/{name}" if folder else name

    def _directory(self, number: int) -> str:
        if self._encoding.version >= 5:
            found = self._directories[number] if number < len(self._directories) else ""
        else:
            found = self._directories[number - 1] if 0 < number <= len(self._directories) else self._folder
        if found.startswith("/") or not self._folder or found == self._folder:
            return found
        return f"{self._folder}/{found}" if found else self._folder

    def _read_header(self, at: int) -> int:
        data = self._data
        many = self._encoding.version >= 4  # maximum_operations_per_instruction, 1 on all machines of SFrame
        minimum, statement, base, line_range, opcode_base = struct.unpack_from("BxBbBB" if many else "BBbBB", data, at)
        at += 6 if many else 5
        if not line_range or not opcode_base:
            raise FormatError("a line number program without opcodes", section=_SECTION)
        self._header = _Header(
            minimum, bool(statement), base, line_range, opcode_base, b"\0" + data[at : at + opcode_base - 1]
        )
        return int(at + opcode_base - 1)

    def _read_old_names(self, at: int) -> None:
        while self._data[at]:
            name, at = self._string(at)
            self._directories.append(name)
        at += 1
        while self._data[at]:
            name, at = self._string(at)
            directory, at = read_uleb128(self._data, at)
            _, at = read_uleb128(self._data, at)
            _, at = read_uleb128(self._data, at)
            self._files.append((name, directory))

    def _string(self, at: int) -> tuple[str, int]:
        end = self._data.find(0, at)
        if end < 0:
            raise FormatError("a string does not end", section=_SECTION)
        return self._data[at:end].decode("utf-8", "backslashreplace"), end + 1

    def _read_names(self, at: int) -> None:
        folders, at = self._entries(at)
        self._directories = [name for name, _ in folders]
        self._files, _ = self._entries(at)

    def _entries(self, at: int) -> tuple[list[tuple[str, int]], int]:
        """Return names and numbers of directories, and the offset behind them."""
        data, kinds = self._data, []
        count = data[at]
        at += 1
        for _ in range(count):
            kind, at = read_uleb128(data, at)
            form, at = read_uleb128(data, at)
            kinds.append((kind, form))
        count, at = read_uleb128(data, at)
        if count > _MAX_NAMES:
            raise FormatError(f"{count:,} names of files", section=_SECTION)
        found = []
        for _ in range(count):
            name, directory = "", 0
            for kind, form in kinds:
                value = forms.value(form, 0, self._encoding, data, at, 0) if kind in (_PATH, _DIRECTORY) else None
                if value is not None and kind == _DIRECTORY:
                    directory = value.number
                elif value is not None and value.section == ".debug_info":  # DW_FORM_string: it stands here
                    name, _ = self._string(value.number)
                elif value is not None and value.section:
                    name = self._sections.string(value.section, value.number)
                at = forms.skip(form, self._encoding, data, at)
            found.append((name, directory))
        return found, at

    def _run(self, at: int) -> list[_Sequence]:
        """Run the program."""
        data, header, order = self._data, self._header, self._order
        end, sequences, rows = len(data), list[_Sequence](), list[Row]()
        address, file, line, statement = 0, 1, 1, header.default_is_statement
        constant = (255 - header.opcode_base) // header.line_range * header.minimum
        while at < end:
            opcode = data[at]
            at += 1
            if opcode >= header.opcode_base:
                advance, line_advance = divmod(opcode - header.opcode_base, header.line_range)
                address += advance * header.minimum
                line += header.line_base + line_advance
                rows.append(Row(address, file, line, statement))
            elif opcode == 1:  # DW_LNS_copy
                rows.append(Row(address, file, line, statement))
            elif opcode == 2:  # DW_LNS_advance_pc
                distance, at = read_uleb128(data, at)
                address += distance * header.minimum
            elif opcode == 3:  # DW_LNS_advance_line
                distance, at = read_sleb128(data, at)
                line += distance
            elif opcode == 4:  # DW_LNS_set_file
                file, at = read_uleb128(data, at)
            elif opcode == 6:  # DW_LNS_negate_stmt
                statement = not statement
            elif opcode == 8:  # DW_LNS_const_add_pc
                address += constant
            elif opcode == 9:  # DW_LNS_fixed_advance_pc
                address += int.from_bytes(data[at : at + 2], order)
                at += 2
            elif opcode:
                for _ in range(header.lengths[opcode]):
                    _, at = read_uleb128(data, at)
            else:
                length, at = read_uleb128(data, at)
                kind = data[at] if length else 0
                if kind == 1:  # DW_LNE_end_sequence
                    starts = [row.address for row in rows]
                    if rows and starts[0] < address and starts == sorted(starts):
                        sequences.append(_Sequence(starts, rows, address))
                    rows = []
                    address, file, line, statement = 0, 1, 1, header.default_is_statement
                elif kind == 2:  # DW_LNE_set_address
                    address = int.from_bytes(data[at + 1 : at + length], order)
                at += length
        return sequences
