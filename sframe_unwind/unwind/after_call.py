"""Recognises return addresses: a call instruction ends there."""

from __future__ import annotations

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import Arch
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.memory import ReadMemory

_CODE_SIZE = 8
"""Number of bytes before a return address that :attr:`Arch.ends_call` needs."""


def follows_call(arch: Arch, pc: int, read: ReadMemory) -> bool:
    """Return whether a call instruction ends at an address; ``False`` if the memory cannot be read.

    :param read: reads the memory of the process.
    """
    try:
        return arch.ends_call(_before(pc, read))
    except MemoryReadError:
        return False


def follows_indirect_call(arch: Arch, pc: int, read: ReadMemory) -> bool:
    """Return whether a call whose target is in a register or in memory ends at an address.

    :param read: reads the memory of the process.
    """
    try:
        code = _before(pc, read)
    except MemoryReadError:
        return False
    return arch.ends_call(code) and arch.call_target(code[-arch.call_size :], pc) is None


def _before(pc: int, read: ReadMemory) -> bytes:
    return read(pc - _CODE_SIZE & ADDRESS_MASK, _CODE_SIZE)
