"""The bits of signed return addresses that the target tells LLDB."""

from __future__ import annotations

import lldb

from sframe_unwind.arch import Arch

_NO_MASK = (1 << 64) - 1
"""``LLDB_INVALID_ADDRESS_MASK``"""
_TOP_BYTE = 0xFF << 56
"""The bits that LLDB ignores if the target does not tell the bits of signatures."""


def pac_mask_of(process: lldb.SBProcess, arch: Arch) -> int | None:
    """Return the authentication bits of a signed return address; ``None``: LLDB does not know them.

    This waits for no lock.
    """
    mask = process.GetAddressMask(lldb.eAddressMaskTypeCode) if arch.pac_mask else 0
    return None if mask == _NO_MASK or not mask & ~_TOP_BYTE else mask
