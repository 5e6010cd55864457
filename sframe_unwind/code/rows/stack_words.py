"""The words on the stack of a frame that follow a direct call: one of them is its return address."""

from __future__ import annotations

from collections.abc import Iterator

from sframe_unwind.address import ADDRESS_MASK, WORD_SIZE
from sframe_unwind.arch import Arch
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import ReadMemory, ReadRegister, ReadWord
from sframe_unwind.named_tuple import NamedTuple

_MOST_WORDS = 1024
"""Maximum number of words from the stack pointer on in which the return address is looked for."""


class FrameValues(NamedTuple):
    """One frame in a process."""

    sp: int
    fp: int
    read_word: ReadWord
    """Reads the stack."""
    read: ReadMemory
    """Reads the memory of the process."""
    bias: int
    """Address in memory minus address in the file that has the frame's code."""
    read_register: ReadRegister | None = None
    """Reads the other registers; ``None``: they are not known."""


def words_of(arch: Arch, frame: FrameValues) -> Iterator[int]:
    """Yield what may be the return address of a frame, as an address in the file; the innermost words first."""
    words = _words(arch, frame)
    return (arch.strip(word, arch.pac_mask) - frame.bias & ADDRESS_MASK for word in words)


def _words(arch: Arch, frame: FrameValues) -> Iterator[int]:
    try:
        if arch.ra is not None and frame.read_register is not None:
            yield frame.read_register(arch.ra)
    except SFrameError:
        pass
    try:
        for number in range(_MOST_WORDS):
            yield frame.read_word(frame.sp + number * WORD_SIZE & ADDRESS_MASK)
    except SFrameError:
        return  # the stack begins here
