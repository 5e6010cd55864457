"""Makes entries of ORC as in ``orc_types.h`` of Linux: two offsets, two registers of four bits, type and flags."""

from __future__ import annotations

import struct
from collections.abc import Iterable

UNDEFINED, PREV_SP, DX, DI, BP, SP, R10, R13, BP_INDIRECT, SP_INDIRECT = range(10)
"""The register numbers of ORC, ``ORC_REG_*``."""


def entry(sp: tuple[int, int], bp: tuple[int, int] = (UNDEFINED, 0), flags: int = 0) -> bytes:
    """Return an entry: base and offset of SP and of BP."""
    return struct.pack("<hhBB", sp[1], bp[1], sp[0] | bp[0] << 4, flags)


def packed(start: int, pairs: Iterable[tuple[int, bytes]]) -> tuple[bytes, int, bytes]:
    """Return the section of addresses, its own address, and the section of entries.

    :param pairs: addresses and entries, in the order of the file.
    """
    found = list(pairs)
    addresses = [struct.pack("<i", address - start - 4 * number) for number, (address, _) in enumerate(found)]
    return b"".join(addresses), start, b"".join(data for _, data in found)
