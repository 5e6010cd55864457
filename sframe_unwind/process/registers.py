"""The registers of a thread as the kernel writes them, in core files and for ``ptrace`` alike."""

from __future__ import annotations

import struct

from sframe_unwind.address import WORD_SIZE
from sframe_unwind.arch import Arch
from sframe_unwind.errors import FormatError
from sframe_unwind.memory import STRUCT_MARKS


def general_registers(arch: Arch, data: bytes) -> dict[int, int]:
    """Return registers by DWARF number.

    :param data: the note ``NT_PRSTATUS`` from its registers on, or what ``ptrace`` gives for it.
    :raises FormatError: it is too short.
    """
    numbers = arch.user_registers
    if len(data) < WORD_SIZE * len(numbers):
        expected = f"expected at least {WORD_SIZE * len(numbers)} for {arch.name}"
        raise FormatError(f"{len(data)} bytes of registers, {expected}")
    return {number: value for number, value in zip(numbers, _words(arch, data, len(numbers))) if number is not None}


def float_registers(arch: Arch, data: bytes) -> dict[int, int]:
    """Return the floating-point registers that can hold a saved address, by DWARF number.

    :param data: the note ``NT_FPREGSET``; one that is too short has none.
    """
    numbers = arch.float_registers
    if not numbers or len(data) < WORD_SIZE * (len(numbers) + 1):
        return {}
    return dict(zip(numbers, _words(arch, data[WORD_SIZE:], len(numbers))))  # behind the control register


def _words(arch: Arch, data: bytes, count: int) -> tuple[int, ...]:
    return struct.unpack_from(f"{STRUCT_MARKS[arch.byteorder]}{count}Q", data)
