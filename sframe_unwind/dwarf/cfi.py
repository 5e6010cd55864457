"""DWARF CFI, reduced to what SFrame tracks: CFA, return address and frame pointer, as the same rules.

pyelftools reads the entries and their instructions.  The rows are made here: its own decoder scales
``DW_CFA_def_cfa_sf`` by the wrong factor and skips the state of signed return addresses.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Union

from elftools.dwarf.callframe import FDE
from elftools.dwarf.structs import DWARFStructs

from sframe_unwind.arch import Arch
from sframe_unwind.dwarf.expression import UnsupportedExpressionError, evaluate
from sframe_unwind.errors import FormatError
from sframe_unwind.unwind_rule import OUTERMOST, RegisterRule, UnwindRule, saved_at_cfa

# DWARF 5, 7.24: call frame instructions.  The first three carry an operand in their low six bits.
_ADVANCE_LOC, _OFFSET, _RESTORE = 0x40, 0x80, 0xC0
_SET_LOC, _ADVANCE_LOCS = 0x01, (0x02, 0x03, 0x04)
_OFFSETS, _RESTORE_EXTENDED = (0x05, 0x11), 0x06
_UNDEFINED, _SAME_VALUE, _REGISTER, _REMEMBER, _RESTORE_STATE = 0x07, 0x08, 0x09, 0x0A, 0x0B
_DEF_CFA, _DEF_CFA_REGISTER, _DEF_CFA_OFFSET, _DEF_CFA_EXPRESSION = 0x0C, 0x0D, 0x0E, 0x0F
_EXPRESSION, _DEF_CFA_SF, _DEF_CFA_OFFSET_SF = 0x10, 0x12, 0x13
_VAL_OFFSETS, _VAL_EXPRESSION = (0x14, 0x15), 0x16
_NEGATE_RA_STATE = 0x2D
_IGNORED = (0x00, 0x2E)  # nop, GNU_args_size


class Expression(NamedTuple):
    """A rule that is computed."""

    code: tuple[int, ...]
    read: bool
    """The value is in memory where the expression says; ``False``: it is the expression's value."""


class Undefined(NamedTuple):
    """The register cannot be restored; of the return address: this is the outermost frame."""


Source = Union[RegisterRule, Expression, Undefined, None]
"""Where a value comes from; ``None``: it is unchanged."""


class Row(NamedTuple):
    """The rules from one address on."""

    cfa: RegisterRule | Expression
    ra: Source
    fp: Source
    ra_signed: bool


class CfiFunction(NamedTuple):
    """The rows of one FDE."""

    start: int
    end: int
    starts: tuple[int, ...]
    rows: tuple[Row, ...]
    signal: bool
    """The augmentation says that this is a signal trampoline."""

    def row_at(self, pc: int) -> Row:
        """Return the row for an address of the function."""
        return self.rows[max(bisect_right(self.starts, pc) - 1, 0)]


def to_rule(structs: DWARFStructs, arch: Arch, row: Row, pc: int) -> UnwindRule:
    """Return the rule that a row amounts to at an address.

    :raises NotAPlaceError: SFrame has no words for it.
    """

    def place(expression: Expression, on_cfa: bool) -> RegisterRule:
        result = evaluate(structs, expression.code, pc, arch.pc, on_cfa)
        if not expression.read:
            return result
        if result.in_memory:
            raise UnsupportedExpressionError("more than one read from memory")
        return result._replace(in_memory=True)

    def saved(source: Source) -> RegisterRule | None:
        if isinstance(source, Undefined):
            raise UnsupportedExpressionError("a register that cannot be restored")
        return place(source, on_cfa=True) if isinstance(source, Expression) else source

    if isinstance(row.ra, Undefined):
        return OUTERMOST
    cfa = row.cfa if isinstance(row.cfa, RegisterRule) else place(row.cfa, on_cfa=False)
    return UnwindRule(cfa, saved(row.ra), saved(row.fp), row.ra_signed)


def decode(entry: FDE, arch: Arch) -> CfiFunction:
    """Return the rows of an FDE.

    :raises FormatError: an instruction of it is not known.
    """
    start = entry["initial_location"]
    machine = _Machine(entry.cie, arch, start)
    machine.run(entry.cie.instructions)
    machine.begin()
    machine.run(entry.instructions)
    starts, rows = zip(*machine.rows())
    augmentation = bytes(entry.cie["augmentation"])
    return CfiFunction(start, start + entry["address_range"], starts, rows, b"S" in augmentation)


class _Machine:
    """Carries out call frame instructions, noting the registers that matter."""

    def __init__(self, cie: Any, arch: Arch, start: int) -> None:
        self._code, self._data = cie["code_alignment_factor"], cie["data_alignment_factor"]
        self._ra, self._fp = cie["return_address_register"], arch.fp
        self._pc = start
        self._cfa: RegisterRule | Expression = RegisterRule(arch.sp, 0, False)
        self._rules: dict[int, Source] = {}
        self._signed = False
        self._initial: dict[int, Source] = {}
        self._stack: list[tuple[RegisterRule | Expression, dict[int, Source], bool]] = []
        self._rows: list[tuple[int, Row]] = []

    def begin(self) -> None:
        """End the common instructions: what they set is what ``restore`` goes back to."""
        self._initial = dict(self._rules)

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Yield address and rules of each row; of several at one address the last counts."""
        self._note()
        return iter(dict(self._rows).items())

    def _note(self) -> None:
        row = Row(self._cfa, self._rules.get(self._ra), self._rules.get(self._fp), self._signed)
        if not self._rows or self._rows[-1][1] != row or self._rows[-1][0] == self._pc:
            self._rows.append((self._pc, row))

    def run(self, instructions: Sequence[Any]) -> None:
        """Carry out instructions.

        :raises FormatError: one is not known.
        """
        for instruction in instructions:
            opcode, args = instruction.opcode, instruction.args
            primary = opcode & 0xC0
            if primary == _ADVANCE_LOC or opcode in _ADVANCE_LOCS:
                self._note()
                self._pc += args[0] * self._code
            elif opcode == _SET_LOC:
                self._note()
                self._pc = args[0]
            elif primary == _RESTORE or opcode == _RESTORE_EXTENDED:
                self._rules[args[0]] = self._initial.get(args[0])
            elif primary == _OFFSET or opcode in _OFFSETS:
                self._rules[args[0]] = saved_at_cfa(args[1] * self._data)
            elif not (self._cfa_instruction(opcode, args) or self._register_instruction(opcode, args)):
                self._state_instruction(opcode)

    def _cfa_instruction(self, opcode: int, args: Sequence[Any]) -> bool:
        base = self._cfa.base if isinstance(self._cfa, RegisterRule) else 0
        offset = self._cfa.offset if isinstance(self._cfa, RegisterRule) else 0
        if opcode == _DEF_CFA:
            self._cfa = RegisterRule(args[0], args[1], False)
        elif opcode == _DEF_CFA_SF:
            self._cfa = RegisterRule(args[0], args[1] * self._data, False)
        elif opcode == _DEF_CFA_REGISTER:
            self._cfa = RegisterRule(args[0], offset, False)
        elif opcode == _DEF_CFA_OFFSET:
            self._cfa = RegisterRule(base, args[0], False)
        elif opcode == _DEF_CFA_OFFSET_SF:
            self._cfa = RegisterRule(base, args[0] * self._data, False)
        elif opcode == _DEF_CFA_EXPRESSION:
            self._cfa = Expression(tuple(args[0]), False)
        else:
            return False
        return True

    def _register_instruction(self, opcode: int, args: Sequence[Any]) -> bool:
        source: Source
        if opcode == _UNDEFINED:
            source = Undefined()
        elif opcode == _SAME_VALUE:
            source = None
        elif opcode == _REGISTER:
            source = RegisterRule(args[1], 0, False)
        elif opcode in _VAL_OFFSETS:
            source = saved_at_cfa(args[1] * self._data)._replace(in_memory=False)
        elif opcode in (_EXPRESSION, _VAL_EXPRESSION):
            source = Expression(tuple(args[1]), opcode == _EXPRESSION)
        else:
            return False
        self._rules[args[0]] = source
        return True

    def _state_instruction(self, opcode: int) -> None:
        if opcode == _REMEMBER:
            self._stack.append((self._cfa, dict(self._rules), self._signed))
        elif opcode == _RESTORE_STATE:
            if not self._stack:
                raise FormatError("CFI restores a state that it has not remembered")
            self._cfa, rules, self._signed = self._stack.pop()
            self._rules = dict(rules)
        elif opcode == _NEGATE_RA_STATE:
            self._signed = not self._signed
        elif opcode not in _IGNORED:
            raise FormatError(f"CFI has the unknown instruction {opcode:#x}")
