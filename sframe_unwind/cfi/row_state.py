"""Executes call frame instructions on a row (DWARF 5, 6.4.2)."""

from __future__ import annotations

from bisect import bisect_left
from typing import Callable, Union

from sframe_unwind.arch import Arch
from sframe_unwind.cfi import constants as c
from sframe_unwind.cfi.cie import Cie
from sframe_unwind.cfi.expression import signed
from sframe_unwind.cfi.leb128 import read_sleb128, read_uleb128
from sframe_unwind.cfi.row import Expression, NoCfa, Row, Source
from sframe_unwind.errors import FormatError, UnsupportedError, counted
from sframe_unwind.unwind_rule import CFA, UNDEFINED, RegisterRule

Registers = tuple[tuple[int, Source], ...]
_NOT_A_PLACE = "an instruction changes a CFA that is not a register and an offset"


class RowState:
    """A row that instructions change.

    :param initial: the rules of the CIE, which ``DW_CFA_restore`` restores.
    """

    def __init__(self, row: Row, initial: Registers, cie: Cie, arch: Arch) -> None:
        self.cfa = row.cfa
        self.registers = row.registers
        self.ra_signed = row.ra_signed
        self._initial = initial
        self._factor = cie.data_factor
        self._arch = arch

    def apply(self, code: bytes) -> None:
        """Execute instructions, none of which concerns the location or the stack of states.

        :raises UnsupportedError: one belongs to another architecture.
        :raises FormatError: one is malformed, or has no meaning here.
        """
        at = 0
        while at < len(code):
            opcode, at = code[at], at + 1
            primary = opcode & ~c.LOW_BITS
            if primary == c.OFFSET:
                factored, at = read_uleb128(code, at)
                self._save(opcode & c.LOW_BITS, factored * self._factor)
            elif primary == c.RESTORE:
                self._restore(opcode & c.LOW_BITS)
            elif opcode in (c.AARCH64_NEGATE_RA_STATE, c.AARCH64_NEGATE_RA_STATE_WITH_PC):
                if not self._arch.pac_mask:
                    raise UnsupportedError(f"call frame instruction {opcode:#x} is not known for {self._arch.name}")
                self.ra_signed = not self.ra_signed
            else:
                operands, at = read_operands(code, at, OPERANDS[opcode])
                _EFFECTS[opcode](self, *operands)

    def _set(self, register: int, source: Source | None) -> None:
        """Record the source of a register; ``None``: it is unchanged."""
        registers = self.registers
        at = bisect_left(registers, (register,))
        found = at < len(registers) and registers[at][0] == register
        entry = () if source is None else ((register, source),)
        self.registers = registers[:at] + entry + registers[at + found :]

    def _save(self, register: int, offset: int) -> None:
        self._set(register, RegisterRule(CFA, signed(offset), True))

    def _restore(self, register: int) -> None:
        self._set(register, next((source for number, source in self._initial if number == register), None))

    def _change_cfa(self, register: int | None, offset: int | None) -> None:
        """Change register or offset of the CFA; ``None``: it stays.

        GCC does so where the CFA is an expression, in epilogues of AArch64's functions with scalable vectors.  DWARF 5,
        6.4.2.2, has no meaning for that, but the rows before are valid.
        """
        if self.cfa is None:
            raise FormatError(_NOT_A_PLACE)
        if isinstance(self.cfa, RegisterRule):
            base, old, _ = self.cfa
            self._define_cfa(base if register is None else register, old if offset is None else offset)
        else:
            self.cfa = NoCfa(_NOT_A_PLACE)

    def _save_factored(self, register: int, offset: int) -> None:
        self._save(register, offset * self._factor)

    def _save_negative(self, register: int, offset: int) -> None:
        self._save(register, -offset * self._factor)

    def _set_value(self, register: int, offset: int) -> None:
        self._set(register, RegisterRule(CFA, signed(offset * self._factor), False))

    def _define_cfa(self, register: int, offset: int) -> None:
        self.cfa = RegisterRule(register, signed(offset), False)

    def _define_cfa_factored(self, register: int, offset: int) -> None:
        # pyelftools 0.33 multiplies by the code alignment factor here (callframe.py, line 608).  DWARF 5, 6.4.2.2: the
        # offset is factored, that is (6.4.1, data_alignment_factor) in units of the data alignment factor.
        self._define_cfa(register, offset * self._factor)

    def _set_cfa_register(self, register: int) -> None:
        self._change_cfa(register, None)

    def _set_cfa_offset(self, offset: int) -> None:
        self._change_cfa(None, offset)

    def _set_cfa_offset_factored(self, offset: int) -> None:
        self._set_cfa_offset(offset * self._factor)

    def _define_cfa_expression(self, code: bytes) -> None:
        self.cfa = Expression(code, False)

    def _ignore(self, size: int) -> None:
        """Ignore ``DW_CFA_GNU_args_size``, which only exceptions need: see :mod:`sframe_unwind.cfi.args_size`."""


Operand = Union[int, bytes]


def read_operands(code: bytes, at: int, kinds: str) -> tuple[list[int | bytes], int]:
    """Return the operands of an instruction, and the offset of the byte after them.

    :param kinds: a letter for each: ``u`` an unsigned and ``s`` a signed LEB128 number, ``b`` a block.
    """
    operands: list[int | bytes] = []
    for kind in kinds:
        number, at = (read_sleb128 if kind == "s" else read_uleb128)(code, at)
        if kind != "b":
            operands.append(number)
        elif at + number > len(code):
            raise FormatError(
                f"an instruction's expression has {counted(number, 'byte')}, but {len(code) - at} are left"
            )
        else:
            operands.append(code[at : at + number])
            at += number
    return operands, at


OPERANDS = {
    **dict.fromkeys((c.RESTORE_EXTENDED, c.UNDEFINED, c.SAME_VALUE, c.DEF_CFA_REGISTER, c.DEF_CFA_OFFSET), "u"),
    **dict.fromkeys((c.OFFSET_EXTENDED, c.REGISTER, c.DEF_CFA, c.VAL_OFFSET, c.GNU_NEGATIVE_OFFSET_EXTENDED), "uu"),
    **dict.fromkeys((c.OFFSET_EXTENDED_SF, c.DEF_CFA_SF, c.VAL_OFFSET_SF), "us"),
    **dict.fromkeys((c.EXPRESSION, c.VAL_EXPRESSION), "ub"),
    c.DEF_CFA_OFFSET_SF: "s",
    c.DEF_CFA_EXPRESSION: "b",
    c.GNU_ARGS_SIZE: "u",
}
"""The operands of each instruction that changes a row; see :func:`read_operands`."""
_EFFECTS: dict[int, Callable[..., None]] = {
    c.OFFSET_EXTENDED: RowState._save_factored,
    c.OFFSET_EXTENDED_SF: RowState._save_factored,
    c.GNU_NEGATIVE_OFFSET_EXTENDED: RowState._save_negative,
    c.RESTORE_EXTENDED: RowState._restore,
    c.UNDEFINED: lambda state, register: state._set(register, UNDEFINED),
    c.SAME_VALUE: lambda state, register: state._set(register, None),
    c.REGISTER: lambda state, register, other: state._set(register, RegisterRule(other, 0, False)),
    c.VAL_OFFSET: RowState._set_value,
    c.VAL_OFFSET_SF: RowState._set_value,
    c.EXPRESSION: lambda state, register, code: state._set(register, Expression(code, True)),
    c.VAL_EXPRESSION: lambda state, register, code: state._set(register, Expression(code, False)),
    c.DEF_CFA: RowState._define_cfa,
    c.DEF_CFA_SF: RowState._define_cfa_factored,
    c.DEF_CFA_REGISTER: RowState._set_cfa_register,
    c.DEF_CFA_OFFSET: RowState._set_cfa_offset,
    c.DEF_CFA_OFFSET_SF: RowState._set_cfa_offset_factored,
    c.DEF_CFA_EXPRESSION: RowState._define_cfa_expression,
    c.GNU_ARGS_SIZE: RowState._ignore,
}
