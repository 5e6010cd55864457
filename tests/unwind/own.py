"""Reads the memory of the test's own process, as a debugger would read that of another process."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from sframe_unwind.errors import MemoryReadError


def read_own(address: int, size: int) -> bytes:
    """Read bytes of this process's memory.  The kernel copies them, and reports a bad address as an error.

    :raises MemoryReadError: a byte cannot be read.
    """
    descriptor = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        data = os.pread(descriptor, size, address)
    except (OSError, OverflowError) as error:
        raise MemoryReadError(address, size) from error
    finally:
        os.close(descriptor)
    if len(data) != size:
        raise MemoryReadError(address, size)
    return data


def own_auxv() -> dict[int, int]:
    """Return the auxiliary vector of this process, without its end mark (AT_NULL)."""
    return {key: value for key, value in struct.iter_unpack("=QQ", Path("/proc/self/auxv").read_bytes()) if key}


def own_mappings() -> dict[str, list[tuple[int, int, str]]]:
    """Return start address, end address (exclusive) and permissions of each mapping of this process, by path."""
    mappings: dict[str, list[tuple[int, int, str]]] = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6:
            start, end = (int(part, 16) for part in fields[0].split("-"))
            mappings.setdefault(fields[5], []).append((start, end, fields[1]))
    return mappings


def own_libraries() -> dict[str, int]:
    """Return the lowest address of each shared library of this process, by path."""
    return {
        name: min(start for start, _, _ in mappings)
        for name, mappings in own_mappings().items()
        if ".so" in name and any("x" in permissions for _, _, permissions in mappings)
    }
