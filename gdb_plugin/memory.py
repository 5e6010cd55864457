"""The memory of the current inferior in the core's terms."""

from __future__ import annotations

import gdb

from sframe_unwind.errors import MemoryReadError


def read(address: int, size: int) -> bytes:
    """Read ``size`` bytes at an address of the current inferior.

    :raises MemoryReadError: they cannot all be read.
    """
    try:
        return bytes(gdb.selected_inferior().read_memory(address, size))
    except (gdb.error, OverflowError) as error:
        # OverflowError: the address comes from a damaged stack and is none.
        raise MemoryReadError(address, size) from error
