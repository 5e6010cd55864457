"""Decodes the register sets of the kernel, which core files and ``ptrace`` have in common."""

from __future__ import annotations

import struct

from sframe_unwind.address import WORD_SIZE
from sframe_unwind.arch import Arch
from sframe_unwind.errors import FormatError, counted
from sframe_unwind.memory import STRUCT_MARKS


def general_registers(arch: Arch, data: bytes) -> dict[int, int]:
    """Return the general registers by DWARF number.

    :param data: the registers in the note ``NT_PRSTATUS``, or the register set ``NT_PRSTATUS`` of ``ptrace``.
    :raises FormatError: the data is too short.
    """
    numbers = arch.user_registers
    if len(data) < WORD_SIZE * len(numbers):
        expected = f"expected at least {WORD_SIZE * len(numbers)} for {arch.name}"
        raise FormatError(f"{counted(len(data), 'byte')} of registers, {expected}")
    return {number: value for number, value in zip(numbers, _words(arch, data, len(numbers))) if number is not None}


def float_registers(arch: Arch, data: bytes) -> dict[int, int]:
    """Return the floating-point registers that can hold a saved address, by DWARF number.

    :param data: the note or register set ``NT_FPREGSET``.  If it is too short, the result is empty.
    """
    numbers = arch.float_registers
    if not numbers or len(data) < WORD_SIZE * (len(numbers) + 1):
        return {}
    return dict(zip(numbers, _words(arch, data[WORD_SIZE:], len(numbers))))  # the first word is the control register


def _words(arch: Arch, data: bytes, count: int) -> tuple[int, ...]:
    return struct.unpack_from(f"{STRUCT_MARKS[arch.byteorder]}{count}Q", data)
