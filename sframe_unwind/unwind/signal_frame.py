"""Unwinds signal frames, in which the kernel saves registers when it calls a signal handler.

A signal frame is recognised by the instructions to which the handler returns.  CFI cannot replace this: on s390x the
instructions are on the stack and have no CFI, and on AArch64 their CFI does not give the interrupted pc.
"""

from __future__ import annotations

from sframe_unwind.arch import Arch
from sframe_unwind.errors import MemoryReadError, StepError
from sframe_unwind.memory import ReadMemory, ReadRegister, ReadWord
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import Registers, UnwindResult

NAME = "signal"
"""Name of this unwinder in stacks."""


def is_trampoline(arch: Arch, read: ReadMemory, pc: int) -> bool:
    """Return whether the code at an address is a signal trampoline."""
    return any(_has_code(read, pc, frame.code) for frame in arch.signal_frames)


def saved_registers(arch: Arch, read: ReadMemory, read_word: ReadWord, pc: int, sp: int) -> dict[int, int] | None:
    """Return the address of each saved register, by DWARF number; ``None``: pc is not in a signal trampoline.

    :raises MemoryReadError: the frame cannot be read.
    """
    for frame in arch.signal_frames:
        if _has_code(read, pc, frame.code):
            start = sp if frame.pointer is None else read_word(sp + frame.pointer)
            return {number: start + offset for number, offset in frame.registers.items()}
    return None


def unwind(arch: Arch, read: ReadMemory, read_word: ReadWord, registers: Registers) -> UnwindResult | None:
    """Return the interrupted frame; ``None``: pc is not in a signal trampoline.

    :raises MemoryReadError: the signal frame cannot be read.
    """
    saved = saved_registers(arch, read, read_word, registers.pc, registers.sp)
    if saved is None:
        return None
    read_register = reader(arch, saved, read_word)
    pc, sp, fp = (read_register(number) for number in (arch.pc, arch.sp, arch.fp))
    return UnwindResult(Caller(sp - arch.sp_from_cfa, pc, sp, fp), True, read_register, NAME)


def reader(arch: Arch, saved: dict[int, int], read_word: ReadWord) -> ReadRegister:
    """Return a function that reads the saved registers.

    :param saved: address of each saved register, by DWARF number.
    """

    def read_register(number: int) -> int:
        if number not in saved:
            raise StepError(f"{arch.register_name(number)} is not in a signal frame")
        return read_word(saved[number])

    return read_register


def _has_code(read: ReadMemory, pc: int, code: bytes) -> bool:
    try:
        return read(pc, len(code)) == code
    except MemoryReadError:
        return False
