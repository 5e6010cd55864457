"""Finds the caller of an interrupted function without unwind data by the instructions of the function.

This is possible if no path to its return changes SP, the frame pointer or the link register."""

from __future__ import annotations

from typing import Callable, Optional

from sframe_unwind.arch import Arch
from sframe_unwind.errors import MemoryReadError, StepError
from sframe_unwind.memory import ReadMemory, ReadRegister
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import Registers

GoesOn = Callable[[int, int], Optional["tuple[int, ...]"]]
"""``(instruction, address)``: see :attr:`sframe_unwind.arch.LinuxKernel.goes_on`."""
_MOST = 256
"""Maximum number of instructions that are followed.  AArch64's longest leaf function in assembly has some 150."""


def returns_untouched(pc: int, goes_on: GoesOn, size: int, read: ReadMemory) -> bool:
    """Return whether each path of the code returns to the link register, and changes neither it, SP nor frame pointer.

    :param size: of an instruction, in bytes.
    """
    todo, seen, returns = [pc], set[int](), False
    while todo:
        address = todo.pop()
        if address in seen:
            continue
        seen.add(address)
        try:
            following = goes_on(int.from_bytes(read(address, size), "little"), address)
        except MemoryReadError:
            return False
        if following is None or len(seen) > _MOST:
            return False
        returns |= not following
        todo += following
    return returns


def caller_of_leaf(arch: Arch, registers: Registers, read_register: ReadRegister) -> Caller:
    """Return the caller of a function that has changed neither SP, frame pointer nor link register.

    :raises StepError: the link register is not known.
    """
    if arch.ra is None:
        raise StepError(f"{arch.name} has no register with the return address")
    return Caller(registers.sp - arch.sp_from_cfa, read_register(arch.ra), registers.sp, registers.fp)
