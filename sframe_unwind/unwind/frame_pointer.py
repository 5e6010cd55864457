"""The caller by the convention that each frame points to the next: a guess, as nothing says that the code keeps it."""

from __future__ import annotations

from typing import Callable

from sframe_unwind.address import ADDRESS_MASK, WORD_SIZE
from sframe_unwind.arch import Arch
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import ReadRegister, ReadWord
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import Registers, UnwindResult

NAME = "guess"


_RECORD_SIZE = 2 * WORD_SIZE
"""AMD64, AArch64: the caller's frame pointer and the return address, where the frame pointer points to."""
_S390X_PC, _S390X_FP = 14 * WORD_SIZE, 11 * WORD_SIZE
"""s390x has no frame pointer; with ``-mbackchain`` SP points to the caller's SP, where the caller's registers are."""


def unwind(
    arch: Arch, read_word: ReadWord, registers: Registers, is_code: Callable[[int], bool]
) -> UnwindResult | None:
    """Return the caller that the frame pointer, or the back chain, leads to.

    :param is_code: tells whether an address is in the code of some object: nothing else is believed.
    """
    _, sp, fp = registers
    try:
        if arch.name == "s390x":
            caller_sp = read_word(sp)
            pc, caller_fp = read_word(caller_sp + _S390X_PC), read_word(caller_sp + _S390X_FP)
        else:
            caller_sp = fp + _RECORD_SIZE
            pc, caller_fp = arch.strip(read_word(fp + WORD_SIZE), arch.pac_mask), read_word(fp)
    except SFrameError:
        return None
    return _handed(arch, pc, caller_sp, caller_fp) if sp < caller_sp and is_code(pc - 1) else None


def unwind_call(
    arch: Arch, read_word: ReadWord, registers: Registers, read_register: ReadRegister, is_code: Callable[[int], bool]
) -> UnwindResult | None:
    """Return the caller of code that is none, as behind a call through a null pointer: nothing has run there.

    :param read_register: the frame's registers, all live.
    """
    try:
        if arch.ra is None:
            pc, caller_sp = read_word(registers.sp), registers.sp + WORD_SIZE
        else:
            pc, caller_sp = read_register(arch.ra), registers.sp
    except SFrameError:
        return None
    return _handed(arch, pc, caller_sp, registers.fp) if is_code(pc - 1) else None


def _handed(arch: Arch, pc: int, sp: int, fp: int) -> UnwindResult | None:
    if sp > ADDRESS_MASK or sp % WORD_SIZE:
        return None
    return UnwindResult(Caller(sp - arch.sp_from_cfa, pc, sp, fp), False, None, NAME)
