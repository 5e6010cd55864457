"""Finds direct jumps and calls by the bytes of the code alone, much faster than instructions are decoded.

Where the instructions begin is not known, so bytes within other instructions, or constants, can look like a jump.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from struct import iter_unpack

from sframe_unwind.code.decode.machines.base import signed

Jump = tuple[int, int]
"""Offset of what looks like a jump in the code, and the offset to which it leads."""

_NEAR, _FAR = frozenset((0xEB, *range(0x70, 0x80))), frozenset((0xE8, 0xE9))
_AMD64 = re.compile(rb"(?=[\xe8\xe9\xeb\x70-\x7f]|\x0f[\x80-\x8f])")
_S390X = re.compile(rb"(?=[\xa7\xc0].)", re.DOTALL)
_BY_HALFWORDS = frozenset((4, 5))
"""The lowest bits of the second byte of s390x's ``brc``, ``bras``, ``brcl`` and ``brasl``."""


def amd64(code: bytes) -> Iterator[Jump]:
    """Yield calls and jumps by 32 bits, and jumps by 8 bits."""
    for found in _AMD64.finditer(code):
        at = found.start()
        first = code[at]
        size, start = (2, 1) if first in _NEAR else (5, 1) if first in _FAR else (6, 2)
        if at + size <= len(code):
            yield at, at + size + int.from_bytes(code[at + start : at + size], "little", signed=True)


def aarch64(code: bytes) -> Iterator[Jump]:
    """Yield ``b`` and ``bl``, ``b.cond``, ``cbz`` and ``cbnz``, ``tbz`` and ``tbnz``."""
    for number, (word,) in enumerate(iter_unpack("<I", code[: len(code) & ~3])):
        if word & 0x7C000000 == 0x14000000:
            distance = signed(word, 26)
        elif word & 0xFF000000 == 0x54000000 or word & 0x7E000000 == 0x34000000:
            distance = signed(word >> 5, 19)
        elif word & 0x7E000000 == 0x36000000:
            distance = signed(word >> 5, 14)
        else:
            continue
        yield 4 * number, 4 * (number + distance)


def s390x(code: bytes) -> Iterator[Jump]:
    """Yield ``brc``, ``bras``, ``brcl`` and ``brasl``."""
    for found in _S390X.finditer(code):
        at = found.start()
        size = 4 if code[at] == 0xA7 else 6
        if not at % 2 and code[at + 1] & 0xF in _BY_HALFWORDS and at + size <= len(code):
            yield at, at + 2 * int.from_bytes(code[at + 2 : at + size], "big", signed=True)
