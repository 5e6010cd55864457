"""The memory of a process in the core's terms."""

from __future__ import annotations

import lldb

from sframe_unwind.errors import MemoryReadError
from sframe_unwind.memory import ReadMemory


def reader(process: lldb.SBProcess) -> ReadMemory:
    """Return the function that reads bytes of a process."""

    def read(address: int, size: int) -> bytes:
        error = lldb.SBError()
        data = process.ReadMemory(address, size, error) if 0 <= address < 1 << 64 else None
        if not error.Success() or data is None or len(data) != size:
            raise MemoryReadError(address, size)
        return bytes(data)

    return read
