"""Rows from the machine code of one file, for single addresses: only the function of an address is interpreted.

The callees of the function are not interpreted before, as they are for a whole file.  That they keep the ABI is
assumed, and :attr:`CodeRow.basis` shows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import islice

from sframe_unwind.code.decode.lifting import check_installed
from sframe_unwind.code.rows.extents import Extent, FoundBy
from sframe_unwind.code.rows.function import Basis, Rows, rule_in
from sframe_unwind.code.rows.one_file import MAX_SIZE, FileCode
from sframe_unwind.code.rows.stack_words import FrameValues, words_of
from sframe_unwind.elf.symbols import Symbols
from sframe_unwind.errors import MemoryReadError, SFrameError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind.after_call import follows_call, follows_indirect_call
from sframe_unwind.unwind.signal_frame import is_trampoline
from sframe_unwind.unwind.step import Caller, step
from sframe_unwind.unwind_rule import OUTERMOST, UnwindRule

_MOST_KEPT = 512
"""Maximum number of functions whose rows are kept."""
_MOST_TRIED = 8
"""Maximum number of functions that are tried for one frame: each is interpreted."""


class CodeRow(NamedTuple):
    """The rule for one address."""

    rule: UnwindRule
    start: int
    """Start address of the function."""
    end: int
    """Address after its last byte."""
    basis: Basis
    found_by: FoundBy


class CodeRows:
    """The rows of one file, each made when it is first asked for.

    All addresses are those of the file, without the load bias.

    :param path: path of the ELF file.
    :param symbols: the symbols of its separate debug file; ``None``: those of the file.
    :raises MissingExtraError: the package that decodes the code is not installed.
    """

    def __init__(self, path: str, symbols: Symbols | None = None) -> None:
        check_installed()
        self._path = path
        self._symbols = symbols
        self._rows: dict[Extent, list[Rows]] = {}
        self.why = ""
        """Why rows are missing, in one line; empty: nothing is known to be damaged.  It is set when rows are made."""

    @cached_property
    def _file(self) -> FileCode | None:
        try:
            return FileCode(self._path, self._symbols)
        except SFrameError as error:
            self.why = str(error)
            return None

    def at(self, address: int) -> CodeRow | None:
        """Return the row for an address; ``None``: nothing is known."""
        file = self._file
        extent = None if file is None else file.extents.find(address)
        if file is None or extent is not None:
            return None if extent is None else self._row(extent, address)
        try:
            called = file.followed_to(address)
        except SFrameError as error:
            self.why = str(error)
            return None
        return None if called is None else self._row(Extent(called, FoundBy.CALLED), address)

    def of_frame(self, address: int, frame: FrameValues) -> CodeRow | None:
        """Return the row for the address of a frame in a process.

        Where no table names the function, the frame can show where it begins: a word on the stack follows a direct call
        of a function whose code leads to the address, and has its return address exactly there.  Where nothing leads
        to a function but its address in data, the word follows a call through a register or memory.  If the frame
        allows different callers, there is no answer.

        :param address: lookup address of the frame.
        """
        file = self._file
        if file is None or file.extents.find(address) is not None:
            return self.at(address)
        found: dict[Caller, CodeRow] = {}
        for start in _possible_starts(file, address, frame):
            row = self._row(Extent(file.before_next(start), FoundBy.FRAME), address)
            caller = None if row is None else _caller(file, row.rule, frame)
            target = None if caller is None else file.target_before(caller.pc - frame.bias)
            if row is not None and caller is not None and target is not None and start in file.leads_to(target):
                found[caller] = row
        if found:
            return next(iter(found.values())) if len(found) == 1 else None
        row = self.at(address)
        if row is None:
            return self._by_pointer(file, address, frame)
        return row if _is_called_so(file, row, frame) else None

    def _by_pointer(self, file: FileCode, address: int, frame: FrameValues) -> CodeRow | None:
        """Return the row of a function whose address data holds; ``None``: there is none, or there are several."""
        found: dict[Caller, CodeRow] = {}
        for start in islice(file.pointed_to(address), _MOST_TRIED):
            row = self._row(Extent(file.before_next(start), FoundBy.POINTER), address)
            caller = None if row is None else _caller(file, row.rule, frame)
            if row is not None and caller is not None and _is_called_by_pointer(file, caller, frame):
                found.setdefault(caller, row)
        return next(iter(found.values())) if len(found) == 1 else None

    def _row(self, extent: Extent, address: int) -> CodeRow | None:
        function, found_by = extent
        file = self._file
        if file is None or function.end - function.start > MAX_SIZE:
            return None
        if function.start == file.image.entry_point:
            return CodeRow(OUTERMOST, *function, Basis.BY_ABI, found_by)
        if (in_header := file.rule_of_plt_header(address)) is not None:
            return CodeRow(in_header, *function, Basis.PROVED, found_by)
        found = rule_in(self._rows_of(file, extent), address)
        return None if found is None else CodeRow(found.rule, *function, found.basis, found_by)

    def _rows_of(self, file: FileCode, extent: Extent) -> list[Rows]:
        function, found_by = extent
        rows = self._rows.pop(extent, None)
        if rows is None:
            try:
                if found_by in (FoundBy.CALLED, FoundBy.FRAME, FoundBy.POINTER):
                    rows = file.rows_of_found(function, returns=found_by is FoundBy.POINTER)
                else:
                    rows = file.rows(function)
            except SFrameError as error:
                self.why, rows = str(error), []
        self._rows[extent] = rows  # last, so that the least recently used one is first
        if len(self._rows) > _MOST_KEPT:
            del self._rows[next(iter(self._rows))]
        return rows


def _possible_starts(file: FileCode, address: int, frame: FrameValues) -> Iterable[int]:
    """Return the functions that the frame may be of, the nearest before the address first.

    They are called before a word on the stack, or are tail calls of what is called there.
    """
    targets = {file.target_before(word) for word in words_of(file.arch, frame)} - {None}
    starts = {start for target in targets if target is not None for start in file.leads_to(target)}
    near = (one for one in starts if address - MAX_SIZE < one <= address and file.extents.find(one) is None)
    return sorted(near, reverse=True)[:_MOST_TRIED]


def _caller(file: FileCode, rule: UnwindRule, frame: FrameValues) -> Caller | None:
    """Return the caller that a rule gives; ``None``: it cannot be computed."""
    try:
        return _step(file, rule, frame)
    except SFrameError:
        return None


def _step(file: FileCode, rule: UnwindRule, frame: FrameValues) -> Caller:
    return step(
        rule=rule,
        arch=file.arch,
        sp=frame.sp,
        fp=frame.fp,
        read_word=frame.read_word,
        read_register=frame.read_register,
    )


def _is_called_so(file: FileCode, row: CodeRow, frame: FrameValues) -> bool:
    """Return whether the frame's return address follows a call that may be one of the function.

    Where the stack cannot be read, nothing contradicts the row, and it leads to no caller.
    """
    if row.rule.ra_undefined:
        return True
    try:
        caller = _step(file, row.rule, frame)
    except MemoryReadError:
        return True
    except SFrameError:
        return False
    target = file.target_before(caller.pc - frame.bias)
    return follows_call(file.arch, caller.pc, frame.read) and (target is None or row.start in file.leads_to(target))


def _is_called_by_pointer(file: FileCode, caller: Caller, frame: FrameValues) -> bool:
    """Return whether a return address follows a call through a register or memory, or is that of a signal handler."""
    read, pc = frame.read, caller.pc
    return follows_indirect_call(file.arch, pc, read) or is_trampoline(file.arch, read, pc)
