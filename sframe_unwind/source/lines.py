"""The lines of a unit (DWARF 5, 6.2)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from sframe_unwind.source._dwarf import LineProgram, LineRow, Unit

_NOWHERE = "", 0


class _Sequence(NamedTuple):
    """Rows of addresses that ascend."""

    start: int
    end: int
    starts: list[int]
    rows: list[LineRow]


class LineTable:
    """The lines of a unit.

    :raises FormatError: the program is malformed or too long.
    :raises FileError: it cannot be read.
    """

    def __init__(self, unit: Unit) -> None:
        top = unit.top()
        self._folder = _decoded(top.text("DW_AT_comp_dir"))
        self._program: LineProgram | None = None
        self._sequences: list[_Sequence] = []
        if not top.has("DW_AT_stmt_list"):
            return
        self._program = unit.line_program(top.number("DW_AT_stmt_list"))
        self._sequences = sorted(_sequences(self._program.rows), key=lambda sequence: sequence.start)
        self._starts = [sequence.start for sequence in self._sequences]

    @property
    def _counts_from_0(self) -> bool:
        """Whether files and directories are numbered from 0."""
        return self._program is not None and self._program.version >= 5

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
        files = self._program.files if self._program is not None else []
        index = number if self._counts_from_0 else number - 1
        if not 0 <= index < len(files):
            return ""
        name = _decoded(files[index][0])
        if name.startswith("/"):
            return name
        folder = self._directory(files[index][1])
        return f"{folder}/{name}" if folder else name

    def _directory(self, number: int) -> str:
        directories = self._program.directories if self._program is not None else []
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


def _sequences(program: list[LineRow]) -> Iterator[_Sequence]:
    rows: list[LineRow] = []
    for row in program:
        if not row.ends_sequence:
            rows.append(row)
            continue
        starts = [row.address for row in rows]
        if rows and starts == sorted(starts):
            yield _Sequence(starts[0], row.address, starts, rows)
        rows = []


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
