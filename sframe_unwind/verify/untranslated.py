"""CFI instructions that GNU as does not translate to SFrame, though their rows could be expressed.

The assembler translates directives, not rows.  ``.cfi_escape`` hides instructions from it; it recognises only a few of
them.  The functions below are named after the instructions; the source is ``gas/gen-sframe.c`` of binutils 2.47.
"""

from __future__ import annotations

from typing import Callable

from sframe_unwind.arch import Arch
from sframe_unwind.cfi import constants as c
from sframe_unwind.cfi.operations import Operation, operations
from sframe_unwind.cfi.records import CfiFunction
from sframe_unwind.errors import counted

_BREG0, _DEREF = 0x70, 0x06
_EXPRESSION_SIZE = 2
"""Size of ``DW_OP_bregN`` with an offset of one byte, in bytes."""


def untranslated(described: CfiFunction, arch: Arch) -> str:
    """Return the instruction of a function that GNU as does not translate; empty: there is none."""
    state = _State(described, arch)
    for operation in operations(described.cie.instructions, arch.byteorder):
        state.follow(operation)
    for operation in operations(described.code, arch.byteorder):
        if why := state.judge(operation):
            return why
        state.follow(operation)
    return ""


def window_save(code: bytes, arch: Arch) -> str:
    """Return the reason if ``DW_CFA_GNU_window_save`` is used on a machine without a meaning for it; else empty.

    AArch64 uses the number for its signed return addresses.
    """
    # The decoder of single instructions gives this one its meaning for AArch64; it has no operand on either machine.
    found = (operation.opcode for operation in operations(code, arch.byteorder))
    if not arch.pac_mask and c.AARCH64_NEGATE_RA_STATE in found:
        return f".cfi_window_save, which has no meaning on {arch.name}"
    return ""


class _State:
    """The state of GNU as at an instruction: the register of the CFA, if the CFA is based on one."""

    def __init__(self, described: CfiFunction, arch: Arch) -> None:
        self.arch = arch
        self.base: int | None = None
        self.data_factor = described.cie.data_factor
        self._begun = False
        self._remembered: list[int | None] = []

    def judge(self, operation: Operation) -> str:
        """Return why the next instruction is not translated; empty: it is translated."""
        if operation.opcode == c.REMEMBER_STATE and not self._begun:
            return ".cfi_remember_state before there is a state"
        check = _CHECKS.get(operation.opcode)
        return check(self, operation) if check else ""

    def follow(self, operation: Operation) -> None:
        opcode, operands = operation
        self._begun |= opcode not in (c.NOP, c.REMEMBER_STATE)
        if opcode in (c.DEF_CFA, c.DEF_CFA_SF, c.DEF_CFA_REGISTER):
            self.base = _number(operands[0])
        elif opcode == c.DEF_CFA_EXPRESSION:
            self.base = self.arch.fp
        elif opcode == c.REMEMBER_STATE:
            self._remembered.append(self.base)
        elif opcode == c.RESTORE_STATE and self._remembered:
            self.base = self._remembered.pop()

    def name(self, register: int) -> str:
        return self.arch.register_name(register)

    def is_tracked(self, register: int) -> bool:
        """Return whether SFrame can express the rule of a register: FP, and RA if its place can vary."""
        return register == self.arch.fp or (self.arch.ra is not None and register == self.arch.ra)


def _def_cfa_expression(state: _State, operation: Operation) -> str:
    (code,) = operation.operands
    # GNU as recognises one form, that of a realigned stack, and only on AMD64, where the return address has a fixed
    # place.
    if isinstance(code, bytes) and state.arch.ra is None and len(code) == _EXPRESSION_SIZE + 1:
        is_known = (code[0], code[-1]) == (_BREG0 + state.arch.fp, _DEREF)
    else:
        is_known = False
    return "" if is_known else "a CFA by .cfi_escape DW_CFA_def_cfa_expression"


def _expression(state: _State, operation: Operation) -> str:
    register, code = _number(operation.operands[0]), operation.operands[1]
    known = isinstance(code, bytes) and len(code) == _EXPRESSION_SIZE
    if known and register == state.arch.fp:
        return ""
    if known and register not in (state.arch.sp, state.base) and not state.is_tracked(register):
        return ""
    return f"{state.name(register)} by .cfi_escape DW_CFA_expression"


def _val_expression(state: _State, operation: Operation) -> str:
    return f"{state.name(_number(operation.operands[0]))} by .cfi_escape DW_CFA_val_expression"


def _val_offset(state: _State, operation: Operation) -> str:
    register, factored = map(_number, operation.operands)
    is_usual_sp = register == state.arch.sp and factored * state.data_factor == state.arch.sp_from_cfa
    if state.is_tracked(register) or (register == state.arch.sp and not is_usual_sp):
        return f"{state.name(register)} by .cfi_val_offset"
    return ""


def _register(state: _State, operation: Operation) -> str:
    register = _number(operation.operands[0])
    # Leaf functions may keep SP in a floating-point register: SP follows from the CFA.
    if register == state.arch.sp and not state.arch.float_registers:
        return f"{state.name(register)} by .cfi_register"
    return ""


def _undefined(state: _State, operation: Operation) -> str:
    register = _number(operation.operands[0])
    return f"{state.name(register)} by .cfi_undefined" if register == state.arch.sp else ""


def _args_size(state: _State, operation: Operation) -> str:
    size = _number(operation.operands[0])
    # Where the CFA is based on FP, a size of one byte is ignored.
    if not size or (state.base == state.arch.fp and size < 0x80):
        return ""
    return f"{counted(size, 'byte')} of arguments by .cfi_escape DW_CFA_GNU_args_size"


def _negate_ra_state_with_pc(*_: object) -> str:
    return "return address signed with the pc (.cfi_negate_ra_state_with_pc)"


def _number(operand: int | bytes) -> int:
    return operand if isinstance(operand, int) else int.from_bytes(operand, "little")


_CHECKS: dict[int, Callable[[_State, Operation], str]] = {
    c.DEF_CFA_EXPRESSION: _def_cfa_expression,
    c.EXPRESSION: _expression,
    c.VAL_EXPRESSION: _val_expression,
    c.VAL_OFFSET: _val_offset,
    c.VAL_OFFSET_SF: _val_offset,
    c.REGISTER: _register,
    c.UNDEFINED: _undefined,
    c.GNU_ARGS_SIZE: _args_size,
    c.AARCH64_NEGATE_RA_STATE_WITH_PC: _negate_ra_state_with_pc,
}
"""Functions that tell why GNU as leaves a function out, by opcode; all other instructions are translated or ignored."""
