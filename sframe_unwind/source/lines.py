"""The lines of a unit (DWARF 5, 6.2)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

from sframe_unwind.errors import FormatError
from sframe_unwind.source.line_header import check_names

_SECTION = ".debug_line"
_MAX_PROGRAM = 1 << 21
"""Bytes of a program.  pyelftools makes some hundred bytes of each; sqlite3.c, one of the longest files that there are,
has a program of 500,000 bytes."""
_NOWHERE = "", 0


class _Row(NamedTuple):
    address: int
    file: int
    line: int
    is_statement: bool


class _Sequence(NamedTuple):
    """Rows of addresses that ascend."""

    start: int
    end: int
    starts: list[int]
    rows: list[_Row]


class LineTable:
    """The lines of a unit.

    :raises FormatError: the program is malformed or too long.
    """

    def __init__(self, unit: Any) -> None:
        top = unit.get_top_DIE()
        folder, program = top.attributes.get("DW_AT_comp_dir"), top.attributes.get("DW_AT_stmt_list")
        self._folder: str = _decoded(folder.value) if folder is not None else ""
        self._names: Any = None
        self._counts_from_0 = False
        self._sequences: list[_Sequence] = []
        if program is None:
            return
        check_names(unit.dwarfinfo.debug_line_sec.stream, program.value, unit.dwarfinfo.config.little_endian)
        found = unit.dwarfinfo.line_program_for_CU(unit)
        size = found.program_end_offset - found.program_start_offset
        if size > _MAX_PROGRAM:
            raise FormatError(f"a line number program of {size:,} bytes", program.value, _SECTION)
        self._names = found.header
        self._counts_from_0 = found["version"] >= 5
        self._sequences = sorted(_sequences(found), key=lambda sequence: sequence.start)
        self._starts = [sequence.start for sequence in self._sequences]

    def at(self, address: int) -> tuple[str, int]:
        """Return the file and line of an address; ``("", 0)``: the program has none."""
        number = bisect_right(self._starts, address) - 1 if self._sequences else -1
        if number < 0 or address >= self._sequences[number].end:
            return _NOWHERE
        rows = self._sequences[number].rows
        at = bisect_right(self._sequences[number].starts, address) - 1
        row = rows[at]
        # As GDB has it: of several rows for one address the last one counts, or the last one that begins a statement.
        while not rows[at].is_statement and at and rows[at - 1].address == row.address:
            at -= 1
        row = rows[at] if rows[at].is_statement else row
        return self.path(row.file), row.line

    def path(self, number: int) -> str:
        """Return the path of a file; empty: it is not known."""
        if self._names is None:
            return ""
        index = number if self._counts_from_0 else number - 1
        if not 0 <= index < len(self._names.file_entry):
            return ""
        entry = self._names.file_entry[index]
        name = _decoded(entry.name)
        if name.startswith("/"):
            return name
        folder = self._directory(entry.dir_index)
        return f"{folder}/{name}" if folder else name

    def _directory(self, number: int) -> str:
        directories = self._names.include_directory
        if not self._counts_from_0:
            if not number:
                return self._folder
            number -= 1
        found = _decoded(directories[number]) if 0 <= number < len(directories) else ""
        if not found:
            return self._folder
        if found.startswith("/") or not self._folder or found == self._folder:
            return found
        return f"{self._folder}/{found}"


def _sequences(program: Any) -> Iterator[_Sequence]:
    rows: list[_Row] = []
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if not state.end_sequence:
            rows.append(_Row(state.address, state.file, state.line, bool(state.is_stmt)))
            continue
        starts = [row.address for row in rows]
        if rows and starts == sorted(starts):
            yield _Sequence(starts[0], state.address, starts, rows)
        rows = []


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
