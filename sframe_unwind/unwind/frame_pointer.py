"""Unwinds frames by the frame pointer or the back chain, for code without unwind data.

The result is a guess, because the code may not maintain a frame pointer or a back chain.
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
"""Name of this unwinder in stacks."""


def unwind(
    arch: Arch, read_word: ReadWord, registers: Registers, is_code: Callable[[int], bool]
) -> UnwindResult | None:
    """Return the caller that the frame record gives (frame-pointer unwind); ``None``: the record is not plausible.

    :param is_code: returns whether an address is in the code of a loaded object; the return address must be.
    """
    record = arch.frame_record
    try:
        start = read_word(registers.sp) if record.in_back_chain else registers.fp
        pc, caller_fp = arch.strip(read_word(start + record.pc), arch.pac_mask), read_word(start + record.fp)
    except SFrameError:
        return None
    caller_sp = start + record.sp
    return _result(arch, pc, caller_sp, caller_fp, is_code) if registers.sp < caller_sp else None


def unwind_untouched(
    arch: Arch, read_word: ReadWord, registers: Registers, read_register: ReadRegister, is_caller: Callable[[int], bool]
) -> UnwindResult | None:
    """Return the caller of a frame whose return address is still where the call put it; ``None``: it is not plausible.

    Such a frame is that of a leaf function, or results from a call through a bad pointer, for example a null pointer.

    :param read_register: reads the registers of the frame, which is an interrupted one.
    :param is_caller: returns whether the caller can be at a lookup address.
    """
    try:
        if arch.ra is None:
            pc, caller_sp = read_word(registers.sp), registers.sp + WORD_SIZE
        else:
            pc, caller_sp = read_register(arch.ra), registers.sp
    except SFrameError:
        return None
    return _result(arch, pc, caller_sp, registers.fp, is_caller)


def _result(arch: Arch, pc: int, sp: int, fp: int, is_code: Callable[[int], bool]) -> UnwindResult | None:
    if sp > ADDRESS_MASK or sp % WORD_SIZE or not is_code(lookup_address(pc, interrupted=False)):
        return None
    return UnwindResult(Caller(sp - arch.sp_from_cfa, pc, sp, fp), False, None, NAME)
