"""The memory of a process at the time of a sample: the copy of its stack, and the files that it had mapped."""

from __future__ import annotations

from array import array
from functools import cached_property

from sframe_unwind.address import WORD_SIZE, ByteOrder
from sframe_unwind.perf.cursor import words
from sframe_unwind.perf.plain_rules import Walked
from sframe_unwind.perf.spaces import Space

RESTORED = 256
"""Maximum distance below SP, in bytes, of registers that a function has restored before it returns."""
LARGEST_STACK = 8 << 20
"""Linux's default limit in bytes.  A read farther from SP is not from the stack."""


class SampleMemory:
    """Reads the stack of a sample, and the mapped files for other addresses.

    :param sp: address of the first byte of ``stack``.
    :param fp: frame pointer register of the innermost frame.
    """

    def __init__(self, space: Space, sp: int, fp: int, stack: bytes, byteorder: ByteOrder) -> None:
        self._space = space
        self.start = sp
        """Address of the first byte of the copy."""
        self._fp = fp
        self._stack = stack
        self._last = len(stack) - 8
        self._byteorder = byteorder
        self.missed = 0
        """The last address outside the stack that was read."""
        self.walked: Walked | None = None
        """The walk of the first method, which others share if they have the same rules at all of its pcs."""

    @cached_property
    def words(self) -> array[int]:
        """The whole words of the copy of the stack."""
        return words(self._stack[: len(self._stack) // WORD_SIZE * WORD_SIZE], self._byteorder)

    def read_word(self, address: int) -> int:
        """Return the word at an address.

        :raises MemoryReadError: neither the stack nor a file has it.
        """
        at = address - self.start
        if 0 <= at <= self._last:
            return int.from_bytes(self._stack[at : at + 8], self._byteorder)
        return int.from_bytes(self.read(address, 8), self._byteorder)

    def read_frame_word(self, address: int) -> int:
        """Return the word at an address, for a walk that restores pc, SP and the frame pointer.

        After an epilogue has popped registers, the unwind data still locates them in memory, which is then below SP
        and was not copied.  The frame pointer is the only one that a walk reads there, and its register has been
        restored.

        :raises MemoryReadError: neither the stack nor a file has it.
        """
        return self._fp if 0 < self.start - address <= RESTORED else self.read_word(address)

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes at an address.

        :raises MemoryReadError: neither the stack nor a file has them.
        """
        at = address - self.start
        if at >= 0 and at + size <= len(self._stack):
            return self._stack[at : at + size]
        self.missed = address
        return self._space.read(address, size)

    def is_not_copied(self, address: int) -> bool:
        """Return whether an address is in the part of the stack that was not copied."""
        return len(self._stack) - 8 < address - self.start < LARGEST_STACK
