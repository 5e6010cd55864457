"""The caller by the convention of frame pointers or back chains, for code without unwind data.

This is a guess: nothing says that the code keeps the convention.
"""

from __future__ import annotations

from typing import Callable

from sframe_unwind.address import ADDRESS_MASK, WORD_SIZE, lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import ReadRegister, ReadWord
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import Registers, UnwindResult

NAME = "guess"
"""The unwinder that frames found here are shown with."""


def unwind(
    arch: Arch, read_word: ReadWord, registers: Registers, is_code: Callable[[int], bool]
) -> UnwindResult | None:
    """Return the caller that the frame pointer, or the back chain, leads to.

    :param is_code: tells whether an address is in the code of some object: nothing else is believed.
    """
    record = arch.frame_record
    try:
        start = read_word(registers.sp) if record.in_back_chain else registers.fp
        pc, caller_fp = arch.strip(read_word(start + record.pc), arch.pac_mask), read_word(start + record.fp)
    except SFrameError:
        return None
    caller_sp = start + record.sp
    return _result(arch, pc, caller_sp, caller_fp, is_code) if registers.sp < caller_sp else None


def unwind_bad_call(
    arch: Arch, read_word: ReadWord, registers: Registers, read_register: ReadRegister, is_code: Callable[[int], bool]
) -> UnwindResult | None:
    """Return the caller of an address that has no code, such as a call through a null pointer: nothing has run there.

    :param read_register: the registers of the frame, which is interrupted.
    """
    try:
        if arch.ra is None:
            pc, caller_sp = read_word(registers.sp), registers.sp + WORD_SIZE
        else:
            pc, caller_sp = read_register(arch.ra), registers.sp
    except SFrameError:
        return None
    return _result(arch, pc, caller_sp, registers.fp, is_code)


def _result(arch: Arch, pc: int, sp: int, fp: int, is_code: Callable[[int], bool]) -> UnwindResult | None:
    if sp > ADDRESS_MASK or sp % WORD_SIZE or not is_code(lookup_address(pc, interrupted=False)):
        return None
    return UnwindResult(Caller(sp - arch.sp_from_cfa, pc, sp, fp), False, None, NAME)
