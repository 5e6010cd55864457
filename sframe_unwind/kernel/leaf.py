"""Finds the caller of an interrupted function without unwind data by its instructions, where no path to its return
changes what the caller needs."""

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
"""How many instructions are followed.  The longest function in assembly of AArch64 that is a leaf has some 150."""


def returns_untouched(pc: int, goes_on: GoesOn, size: int, read: ReadMemory) -> bool:
    """Return whether code returns to the link register on each path, with it, SP and frame pointer as they are.

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
