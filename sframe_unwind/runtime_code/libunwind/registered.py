"""Modules for the registrations in libunwind's list: lookup of their unwind info by address."""

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
from sframe_unwind.runtime_code.libunwind.rows import Alias, RegionRow, build_rows
from sframe_unwind.unwind.modules import Found, LookupResult, Module, Modules, NoData
from sframe_unwind.unwind.run_time_match import Procedure, RunTimeMatch
from sframe_unwind.unwind.step import needs_registers
from sframe_unwind.unwind_rule import UnwindRule

_MAX_NAME = 1024
"""Maximum length of a name in bytes; a longer one is truncated."""
MAX_TABLE = 1 << 28
"""Maximum size of a table in bytes; a larger one counts as damaged."""
_MAX_DEPTH = 8
"""Maximum length of a chain of ALIAS directives."""
_TABLE_ENTRY = 8


class Registered(Module):
    """Base class for the registrations of all formats.

    :param read: reads the memory of the process.
    """

    what = "libunwind"
    """Name of the kind of unwind info in messages."""

    def __init__(self, entry: Entry, read: ReadMemory, structures: Structures) -> None:
        self.entry = entry
        self._read = read
        self._structures = structures
        self.registered_name = read_c_string(read, structures.table.unpack(entry.union)[0], _MAX_NAME)
        """The registered name; empty: there is none."""
        self.kind = f"unwind info of {self.registered_name or hex(entry.start)}"
        super().__init__("run-time code", [(entry.start, entry.end)], lambda: None)

    def run_time_name(self, _pc: int) -> str:
        """Return the registered name."""
        return self.registered_name

    def found(self, start: int, row_start: int, end: int, rule: UnwindRule, signal: bool, modules: Modules) -> Found:
        """Return the lookup result for a rule.

        :param start: address of the first byte of the procedure.
        :param row_start: offset from which the rule applies, in bytes from ``start``.
        :param end: end address of the procedure (exclusive).
        """
        procedure = Procedure(start, end, self.registered_name, f"{self.what} at {self.entry.address:#x}")
        match = RunTimeMatch(procedure, row_start, rule)
        return Found(rule, signal, match, self, needs_registers(rule, modules.arch))


class UnknownFormat(Registered):
    """A registration with unwind info of an unknown format."""

    def look_up(self, _pc: int, _modules: Modules) -> LookupResult:
        """Always raises :class:`FormatError`: the format of the entry is unknown."""
        raise FormatError(
            f"the entry at {self.entry.address:#x} has the unwind info format {self.entry.format},"
            f" expected {Format.DYNAMIC.value} to {Format.REMOTE_TABLE.value}"
        )


class RegisteredProcedure(Registered):
    """``UNW_INFO_FORMAT_DYNAMIC``: one procedure with regions of directives."""

    what = "libunwind proc-info"

    def __init__(self, entry: Entry, read: ReadMemory, structures: Structures) -> None:
        super().__init__(entry, read, structures)
        self._known: tuple[list[int], list[RegionRow]] | None = None
        self._depth = 0

    def look_up(self, pc: int, modules: Modules) -> LookupResult:
        """Return the rule that the directives give for an address.

        :raises SFrameError: the directives are damaged, or cannot be read.
        """
        if self._depth == _MAX_DEPTH:
            raise FormatError(f"ALIAS is circular, at {pc:#x}")
        self._depth += 1
        try:
            starts, rows = self._rows(modules)
            start, end = self.ranges[0]
            offset, rule = rows[bisect_right(starts, pc - start) - 1]
            if isinstance(rule, Alias):
                rule = rule.rule(pc - start, lambda address: _resolve(address, modules))
            return self.found(start=start, row_start=offset, end=end, rule=rule, signal=False, modules=modules)
        finally:
            self._depth -= 1

    def _rows(self, modules: Modules) -> tuple[list[int], list[RegionRow]]:
        if self._known is None:
            *_, first = self._structures.procedure.unpack_from(self.entry.union)
            regions = read_regions(self._read, self._structures, first)
            start, end = self.ranges[0]
            rows = build_rows(modules.arch, regions, end - start, lambda address: _resolve(address, modules))
            self._known = [offset for offset, _ in rows], rows
        return self._known


def _resolve(address: int, modules: Modules) -> UnwindRule:
    result = modules.results[address]
    if isinstance(result, Found):
        return result.rule
    reason = result.reason if isinstance(result, NoData) else str(result.error)
    raise FormatError(f"ALIAS of {address:#x}: {reason}")


class RegisteredTable(Registered):
    """``UNW_INFO_FORMAT_TABLE`` and ``UNW_INFO_FORMAT_REMOTE_TABLE``: a search table of DWARF FDEs.

    The table has the format of the one in ``.eh_frame_hdr``.
    """

    what = "libunwind table of DWARF FDEs"

    def look_up(self, pc: int, modules: Modules) -> LookupResult:
        """Return the rule of the FDE for an address.

        :raises SFrameError: the table or the FDE is damaged, or cannot be read.
        """
        _, base, length, data = self._structures.table.unpack(self.entry.union)
        size = length * WORD_SIZE
        if size > MAX_TABLE:
            raise FormatError(f"the table at {data:#x} has {size:,} bytes, expected at most {MAX_TABLE:,}")
        at = pc - self.entry.load_offset & ADDRESS_MASK
        mark = STRUCT_MARKS[modules.arch.byteorder]
        found = search_table(
            table=lazy_memory(self._read, data, size), offset=0, count=size // _TABLE_ENTRY, base=base, mark=mark, pc=at
        )
        if found is not None:
            # The FDEs can be anywhere in memory, so the "section" is all memory; sys.maxsize is the limit of len().
            memory = lazy_memory(self._read, 0, sys.maxsize)
            fde = Records(memory, 0, modules.arch, data_base=base).fde(found.fde & ADDRESS_MASK)
            if fde.start <= at < fde.end:
                function, bias = fde.decode(), pc - at
                rule, offset = function.rule_at(at, modules.arch), function.row_offset(at)
                return self.found(
                    start=fde.start + bias,
                    row_start=offset,
                    end=fde.end + bias,
                    rule=rule,
                    signal=function.cie.signal,
                    modules=modules,
                )
        return NoData("no FDE of the table contains the address", self)


_KINDS: dict[int, type[Registered]] = {
    Format.DYNAMIC: RegisteredProcedure,
    Format.TABLE: RegisteredTable,
    Format.REMOTE_TABLE: RegisteredTable,
}


def registered(entry: Entry, read: ReadMemory, structures: Structures) -> Registered:
    """Return the module for an entry of the list."""
    return _KINDS.get(entry.format, UnknownFormat)(entry, read, structures)
