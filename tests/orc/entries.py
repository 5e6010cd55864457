"""Makes entries of ORC, by ``orc_types.h`` of Linux: two offsets, two registers of four bits, type and flags."""

from __future__ import annotations

import struct

UNDEFINED, PREV_SP, DX, DI, BP, SP, R10, R13, BP_INDIRECT, SP_INDIRECT = range(10)
"""``ORC_REG_*``."""


def entry(sp: tuple[int, int], bp: tuple[int, int] = (UNDEFINED, 0), flags: int = 0) -> bytes:
    """Return an entry: base and offset of SP and of BP."""
    return struct.pack("<hhBB", sp[1], bp[1], sp[0] | bp[0] << 4, flags)
