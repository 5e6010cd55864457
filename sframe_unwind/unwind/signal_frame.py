"""The registers that the kernel saved on the stack when it called a signal handler.

Known by the instructions that the handler returns to (:attr:`sframe_unwind.arch.Arch.sigreturn`), as the CFI of such
code does not exist (s390x on the stack) or does not tell the interrupted address (AArch64).  The offsets are those of
``struct rt_sigframe`` from the stack pointer on.
"""

from __future__ import annotations

from sframe_unwind.arch import Arch
from sframe_unwind.errors import MemoryReadError, StepError
from sframe_unwind.memory import ReadMemory, ReadRegister, ReadWord
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import Registers, UnwindResult

NAME = "signal"
"""Who unwinds a signal frame."""

# AMD64: struct sigcontext in a ucontext, whose address is the stack pointer.
_AMD64_ORDER = (8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16)
_AMD64 = {number: 40 + 8 * word for word, number in enumerate(_AMD64_ORDER)}
# AArch64: behind siginfo (128), the head of ucontext (176), and the fault's address.
_AARCH64 = {number: 312 + 8 * number for number in range(33)}
# s390x: struct _sigregs behind the register save area (160), the instruction (8), siginfo (128), head of ucontext (40).
_S390X_SIGREGS = 336
_S390X = {64: 0, 65: 8, **{n: 16 + 8 * n for n in range(16)}}
_S390X_FLOATING_POINT = 16 + 128 + 64 + 8

_SIGRETURN_S390X = b"\x0a\x77"
"""``svc 119``: the frame of a handler that was installed without ``SA_SIGINFO``."""
_SIGREGS_POINTER = 160 + 8


def saved_registers(arch: Arch, read: ReadMemory, read_word: ReadWord, pc: int, sp: int) -> dict[int, int] | None:
    """Return where each saved register is, by DWARF number; ``None`` where the pc is no signal trampoline's.

    :raises MemoryReadError: the frame cannot be read.
    """
    try:
        code = read(pc, len(arch.sigreturn))
    except MemoryReadError:
        return None
    if arch.name != "s390x":
        offsets = _AMD64 if arch.name == "amd64" else _AARCH64
        return {number: sp + offset for number, offset in offsets.items()} if code == arch.sigreturn else None
    if code == arch.sigreturn:
        start = sp + _S390X_SIGREGS
    elif code == _SIGRETURN_S390X:
        start = read_word(sp + _SIGREGS_POINTER)
    else:
        return None
    by_name = {name: number for number, name in arch.register_names.items()}
    floating_point = {by_name[f"f{n}"]: _S390X_FLOATING_POINT + 8 * n for n in range(16)}
    return {number: start + offset for number, offset in {**_S390X, **floating_point}.items()}


def unwind(arch: Arch, read: ReadMemory, read_word: ReadWord, registers: Registers) -> UnwindResult | None:
    """Return the interrupted frame; ``None`` where the pc is no signal trampoline's.

    :raises MemoryReadError: the signal frame cannot be read.
    """
    places = saved_registers(arch, read, read_word, registers.pc, registers.sp)
    if places is None:
        return None
    read_register = reader(arch, places, read_word)
    pc, sp, fp = (read_register(number) for number in (arch.pc, arch.sp, arch.fp))
    return UnwindResult(Caller(sp - arch.sp_from_cfa, pc, sp, fp), True, read_register, NAME)


def reader(arch: Arch, places: dict[int, int], read_word: ReadWord) -> ReadRegister:
    """Return the function that reads the saved registers."""

    def read_register(number: int) -> int:
        if number not in places:
            raise StepError(f"{arch.register_name(number)} is not in a signal frame")
        return read_word(places[number])

    return read_register
