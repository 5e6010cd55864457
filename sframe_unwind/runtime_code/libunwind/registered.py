"""One registration in libunwind's list as a module: what it is called, and what it says of a pc."""

from __future__ import annotations

import sys
from bisect import bisect_right

from sframe_unwind.address import ADDRESS_MASK, WORD_SIZE
from sframe_unwind.cfi.index import search_table
from sframe_unwind.cfi.records import Records
from sframe_unwind.errors import FormatError
from sframe_unwind.memory import STRUCT_MARKS, ReadMemory, lazy_memory, read_c_string
from sframe_unwind.runtime_code.libunwind.layout import Entry, Format, Structures
from sframe_unwind.runtime_code.libunwind.regions import read_regions
from sframe_unwind.runtime_code.libunwind.rows import Alias, Row, build_rows
from sframe_unwind.unwind.modules import Found, LookupResult, Module, Modules, NoData, Procedure, RunTimeMatch
from sframe_unwind.unwind.step import needs_registers
from sframe_unwind.unwind_rule import UnwindRule

_MAX_NAME = 1024
"""Bytes; a longer name is cut."""
MAX_TABLE = 1 << 28
"""Bytes; a table that is longer is taken for damaged."""
_MAX_DEPTH = 8
"""Of code that is an alias of code that is an alias, and so on."""
_TABLE_ENTRY = 8


class Registered(Module):
    """What the formats have in common.

    :param read: reads the memory of the process.
    """

    what = "libunwind"
    """The unwind info in words."""

    def __init__(self, entry: Entry, read: ReadMemory, structures: Structures) -> None:
        self.entry = entry
        self._read = read
        self._structures = structures
        self.registered_name = read_c_string(read, structures.table.unpack(entry.union)[0], _MAX_NAME)
        """Empty where it has none."""
        self.kind = f"unwind info of {self.registered_name or hex(entry.start)}"
        super().__init__("run-time code", [(entry.start, entry.end)], lambda: None)

    def run_time_name(self, _pc: int) -> str:
        """Return the name."""
        return self.registered_name

    def covered(
        self, start: int, row_start: int, end: int, rule: UnwindRule, signal: bool, modules: Modules
    ) -> Found:
        """Return the answer for a pc that a rule was found for."""
        procedure = Procedure(start, end, self.registered_name, f"{self.what} at {self.entry.address:#x}")
        match = RunTimeMatch(procedure, row_start, rule)
        return Found(rule, signal, match, self, needs_registers(rule, modules.arch))


class UnknownFormat(Registered):
    """A registration that cannot be understood."""

    def look_up(self, _pc: int, _modules: Modules) -> LookupResult:
        """Fail."""
        raise FormatError(
            f"the entry at {self.entry.address:#x} has the unwind info format {self.entry.format},"
            f" expected {Format.DYNAMIC.value} to {Format.REMOTE_TABLE.value}"
        )


class RegisteredProcedure(Registered):
    """``UNW_INFO_FORMAT_DYNAMIC``: one procedure, described by regions."""

    what = "libunwind proc-info"

    def __init__(self, entry: Entry, read: ReadMemory, structures: Structures) -> None:
        super().__init__(entry, read, structures)
        self._known: tuple[list[int], list[Row]] | None = None
        self._depth = 0

    def look_up(self, pc: int, modules: Modules) -> LookupResult:
        """Return what the directives say of an address.

        :raises SFrameError: they are damaged, or cannot be read.
        """
        if self._depth == _MAX_DEPTH:
            raise FormatError(f"ALIAS goes in a circle, at {pc:#x}")
        self._depth += 1
        try:
            starts, rows = self._rows(modules)
            start, end = self.ranges[0]
            offset, rule = rows[bisect_right(starts, pc - start) - 1]
            if isinstance(rule, Alias):
                rule = rule.rule(pc - start, lambda address: _resolve(address, modules))
            return self.covered(start, offset, end, rule, False, modules)
        finally:
            self._depth -= 1

    def _rows(self, modules: Modules) -> tuple[list[int], list[Row]]:
        if self._known is None:
            *_, first = self._structures.procedure.unpack_from(self.entry.union)
            regions = read_regions(self._read, self._structures, first)
            start, end = self.ranges[0]
            rows = build_rows(modules.arch, regions, end - start, lambda address: _resolve(address, modules))
            self._known = [offset for offset, _ in rows], rows
        return self._known


def _resolve(address: int, modules: Modules) -> UnwindRule:
    answer = modules.answers[address]
    if isinstance(answer, Found):
        return answer.rule
    reason = answer.reason if isinstance(answer, NoData) else str(answer.error)
    raise FormatError(f"ALIAS of {address:#x}: {reason}")


class RegisteredTable(Registered):
    """``UNW_INFO_FORMAT_TABLE`` and ``_REMOTE_TABLE``: a search table over DWARF FDEs, as ``.eh_frame_hdr`` has it."""

    what = "libunwind table of DWARF FDEs"

    def look_up(self, pc: int, modules: Modules) -> LookupResult:
        """Return what the FDE for an address says.

        :raises SFrameError: table or FDE are damaged, or cannot be read.
        """
        _, base, length, data = self._structures.table.unpack(self.entry.union)
        size = length * WORD_SIZE
        if size > MAX_TABLE:
            raise FormatError(f"the table at {data:#x} has {size:,} bytes, expected at most {MAX_TABLE:,}")
        at = pc - self.entry.load_offset & ADDRESS_MASK
        mark = STRUCT_MARKS[modules.arch.byteorder]
        record = search_table(lazy_memory(self._read, data, size), 0, size // _TABLE_ENTRY, base, mark, at)
        if record is not None:
            # The FDEs lie anywhere in memory: a section that is all of it, as far as Python can count.
            memory = lazy_memory(self._read, 0, sys.maxsize)
            fde = Records(memory, 0, modules.arch, data_base=base).fde(record & ADDRESS_MASK)
            if fde.start <= at < fde.end:
                function, bias = fde.decode(), pc - at
                rule, offset = function.rule_at(at, modules.arch), function.row_offset(at)
                return self.covered(fde.start + bias, offset, fde.end + bias, rule, function.cie.signal, modules)
        return NoData("no FDE of the table contains the address", self)


_KINDS: dict[int, type[Registered]] = {
    Format.DYNAMIC: RegisteredProcedure,
    Format.TABLE: RegisteredTable,
    Format.REMOTE_TABLE: RegisteredTable,
}


def registered(entry: Entry, read: ReadMemory, structures: Structures) -> Registered:
    """Return the module for an entry of the list."""
    return _KINDS.get(entry.format, UnknownFormat)(entry, read, structures)
