"""Executes call frame instructions: returns the rows that they make (DWARF 5, 6.4.2 and 7.24).

A program of 20,000 functions has some hundred different rows, and its instructions change one to another in the same
few ways.  So the effect of a run of instructions on a row is kept: a known run costs one lookup, and rows are shared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import islice

from sframe_unwind.arch import Arch
from sframe_unwind.cfi import constants as c
from sframe_unwind.cfi.cie import Cie
from sframe_unwind.cfi.leb128 import MAX_SIZE, read_uleb128
from sframe_unwind.cfi.pointers import Bases, read_pointer
from sframe_unwind.cfi.row import NoCfa, Row, Source
from sframe_unwind.cfi.row_state import Registers, RowState
from sframe_unwind.errors import FormatError, UnsupportedError, counted
from sframe_unwind.named_tuple import NamedTuple

MAX_ROWS = 1 << 16
"""Maximum number of different rows of one function; the largest of real programs have some thousand."""
MAX_REGISTERS = 1 << 20
"""Maximum total number of registers in the different rows of one function."""
_KEPT_CHANGES, _KEPT_TABLES = 1 << 14, 1 << 10
"""Sizes of the caches that all functions share: effects of runs of instructions on rows, and whole tables."""


class Rows(NamedTuple):
    """The rows of one function."""

    offsets: tuple[int, ...]
    """Start of each row, in bytes from the start of the function; ascending, and the first is 0."""
    rows: tuple[Row, ...]


def _any_of(*opcodes: int) -> bytes:
    return b"[" + b"".join(re.escape(bytes([opcode])) for opcode in opcodes) + b"]"


_NUMBER = rb"[\x80-\xff]{0,%d}[\x00-\x7f]" % (MAX_SIZE - 1)
_BLOCK = b"(?:" + b"|".join(re.escape(bytes([size])) + b".{%d}" % size for size in range(32)) + b")"
"""An expression of a usual length."""
_NO_NUMBER = _any_of(c.AARCH64_NEGATE_RA_STATE, c.AARCH64_NEGATE_RA_STATE_WITH_PC)
_ONE_NUMBER = _any_of(
    *(c.RESTORE_EXTENDED, c.UNDEFINED, c.SAME_VALUE, c.DEF_CFA_REGISTER, c.DEF_CFA_OFFSET, c.DEF_CFA_OFFSET_SF),
    c.GNU_ARGS_SIZE,
)
_TWO_NUMBERS = _any_of(
    *(c.OFFSET_EXTENDED, c.REGISTER, c.DEF_CFA, c.OFFSET_EXTENDED_SF, c.DEF_CFA_SF, c.VAL_OFFSET, c.VAL_OFFSET_SF),
    c.GNU_NEGATIVE_OFFSET_EXTENDED,
)
_KNOWN = {*range(c.RESTORE_STATE + 1), *range(c.DEF_CFA, c.VAL_EXPRESSION + 1), *range(c.ADVANCE_LOC, 1 << 8)}
_KNOWN |= {c.MIPS_ADVANCE_LOC8, *range(c.AARCH64_NEGATE_RA_STATE_WITH_PC, c.GNU_NEGATIVE_OFFSET_EXTENDED + 1)}
_CHANGES = b"|".join(
    (
        rb"[\x80-\xbf]" + _NUMBER,  # DW_CFA_offset
        rb"[\xc0-\xff]",  # DW_CFA_restore
        _NO_NUMBER,
        _ONE_NUMBER + _NUMBER,
        _TWO_NUMBERS + _NUMBER + _NUMBER,
        rb"\x0f" + _BLOCK,  # DW_CFA_def_cfa_expression
        rb"[\x10\x16]" + _NUMBER + _BLOCK,  # DW_CFA_expression, DW_CFA_val_expression
    )
)
_RUN = (
    rb"((?:" + _CHANGES + rb"){0,32})"
    # DW_CFA_advance_loc; or nop, remember_state, restore_state, the other advances; or anything
    rb"(?:([\x40-\x7f])|(\x00+|[\x0a\x0b]|\x02.|\x03..|\x04.{4}|\x1d.{8})|(.))?"
)
_WITH_BLOCK = (c.DEF_CFA_EXPRESSION, c.EXPRESSION, c.VAL_EXPRESSION)
_AT_ONCE = 1 << 12
"""Maximum number of bytes of instructions whose runs are all found at once, which is faster but takes memory."""
Run = tuple[bytes, bytes, bytes, bytes]
"""Instructions that change the row, and what follows them: ``DW_CFA_advance_loc``, an instruction that is neither, or
the first byte of something else.  At most one of these three is not empty."""


@cache
def _pattern() -> re.Pattern[bytes]:
    return re.compile(_RUN, re.DOTALL)  # compiled on demand: it takes longer than importing the package


def _runs(code: bytes, at: int) -> Iterable[Run]:
    """Return the runs of instructions from an offset on; those after the first that other data follows are invalid."""
    if not at and len(code) <= _AT_ONCE:
        return _pattern().findall(code)
    return (match.groups(b"") for match in _pattern().finditer(code, at))  # type: ignore[misc]  # as a Run has


class _Budget:
    """The rows that one function may still add; a class of its own, as threads decode with the same decoder."""

    __slots__ = ("_registers", "_rows")

    def __init__(self) -> None:
        self._rows, self._registers = MAX_ROWS, MAX_REGISTERS

    def spend(self, registers: int) -> None:
        """Count a row, given its number of registers."""
        self._rows -= 1
        self._registers -= registers
        if self._rows < 0 or self._registers < 0:
            raise FormatError(
                f"a function with more than {MAX_ROWS:,} different rows, or {MAX_REGISTERS:,} registers in them"
            )


class RowDecoder:
    """Decodes the instructions of the FDEs that refer to one CIE, or to equal CIEs of several files.

    :param bases: addresses to which the operands of ``DW_CFA_set_loc`` are relative.
    :raises FormatError: the CIE's own instructions cannot be executed.
    """

    def __init__(self, cie: Cie, arch: Arch, bases: Bases) -> None:
        self._cie = cie
        self._arch = arch
        self._bases = bases
        self._order = bases.byteorder
        self._initial: Registers = ()
        self._first = Row(None, (), False)
        self._forget()
        self._first = self._decode(cie.instructions, 0, 0).rows[-1]
        self._initial = self._first.registers
        self._forget()

    def _forget(self) -> None:
        self._transitions: dict[tuple[Row, bytes], Row] = {}
        self._rows: dict[tuple[Source | NoCfa | None, Registers, bool], Row] = {}
        self._tables: dict[bytes, Rows] = {}

    def decode(self, code: bytes, address: int, start: int) -> Rows:
        """Return the rows of an FDE.

        :param code: its instructions.
        :param address: address of the instructions in memory.
        :param start: start address of the function.
        :raises UnsupportedError: an instruction is unknown.
        :raises FormatError: one is malformed, or the function has implausibly many rows.
        """
        known = self._tables.get(code)
        if known is None:
            if len(self._transitions) > _KEPT_CHANGES:
                self._forget()
            if len(self._tables) > _KEPT_TABLES:
                self._tables.clear()
            known = self._decode(code, address, start)
        return known

    def _decode(self, code: bytes, address: int, start: int) -> Rows:
        budget, is_absolute = _Budget(), False
        transitions, factor = self._transitions, self._cie.code_factor
        row = last = self._first
        table, remembered = {0: row}, []
        location = at = 0
        while at < len(code):
            for number, (changes, advance, other, rare) in enumerate(_runs(code, at)):
                if changes:
                    row = transitions.get((row, changes)) or self._change(row, changes, budget)
                if advance:
                    if row is not last:
                        table[location] = last = row
                    location += (advance[0] - c.ADVANCE_LOC) * factor
                elif other:
                    opcode = other[0]
                    if opcode == c.REMEMBER_STATE:
                        remembered.append(row)
                    elif opcode == c.RESTORE_STATE:
                        if not remembered:
                            raise FormatError("DW_CFA_restore_state without a state that was remembered")
                        row = remembered.pop()
                    elif opcode != c.NOP:
                        if row is not last:
                            table[location] = last = row
                        location += int.from_bytes(other[1:], self._order) * factor
                elif rare:
                    at += sum(sum(map(len, run)) for run in islice(_runs(code, at), number + 1)) - 1
                    break
            else:
                break
            if rare[0] == c.SET_LOC:
                if row is not last:
                    table[location] = last = row
                target, at = read_pointer(code, at + 1, self._cie.encoding, address + at + 1, self._bases)
                location, is_absolute = _location(target - start, location), True
            elif rare[0] in _WITH_BLOCK:
                changes = _with_block(code, at)
                row = transitions.get((row, changes)) or self._change(row, changes, budget)
                at += len(changes)
            elif not number and not changes:  # otherwise a run had the maximum length, and the next one begins here
                raise _unreadable(code, at)
        if row is not last:
            table[location] = row
        rows = Rows(tuple(table), tuple(table.values()))
        if not is_absolute:
            self._tables[code] = rows
        return rows

    def _change(self, row: Row, changes: bytes, budget: _Budget) -> Row:
        """Return the row that instructions make from another row."""
        state = RowState(row, self._initial, self._cie, self._arch)
        state.apply(changes)
        key = state.cfa, state.registers, state.ra_signed
        changed = self._rows.get(key)
        if changed is None:
            budget.spend(len(state.registers))
            changed = self._rows[key] = Row(*key)
        self._transitions[row, changes] = changed
        return changed


def _location(target: int, location: int) -> int:
    """Return the target of ``DW_CFA_set_loc``, in bytes from the start of the function."""
    if target < location:
        raise FormatError(f"DW_CFA_set_loc goes back from offset {location:#x} of the function to {target:#x}")
    return target


def _with_block(code: bytes, at: int) -> bytes:
    """Return the instruction at an offset; its last operand is an expression."""
    end = at + 1
    if code[at] != c.DEF_CFA_EXPRESSION:
        _, end = read_uleb128(code, end)
    size, end = read_uleb128(code, end)
    if size > len(code) - end:
        raise FormatError(f"an instruction's expression has {counted(size, 'byte')}, but {len(code) - end} are left")
    return code[at : end + size]


def _unreadable(code: bytes, at: int) -> FormatError:
    """Return the problem of the instruction at an offset."""
    opcode = code[at]
    if opcode not in _KNOWN:
        return UnsupportedError(f"call frame instruction {opcode:#x} is not known")
    number = re.compile(rb"[\x80-\xff]{%d}" % MAX_SIZE)
    if number.search(code[at + 1 : at + 1 + 2 * MAX_SIZE]):
        return FormatError(f"LEB128 number of more than {MAX_SIZE} bytes in call frame instruction {opcode:#x}")
    return FormatError(f"the data ends within call frame instruction {opcode:#x}")
