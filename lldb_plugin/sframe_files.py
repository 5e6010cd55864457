"""Tells from the names in a file whether SFrame can concern a program that has loaded it."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import NamedTuple

from sframe_unwind.runtime_code.names import JIT_SYMBOL, LIST_FUNCTION, LIST_SYMBOL

_MAGIC_64 = b"\x7fELF\x02"
"""The machines for which SFrame has an ABI have ELF files of 64 bits."""
_PT_GNU_SFRAME = 0x6474E554
_SHT_STRTAB = 3
_NAMES = [f"{name}\0".encode() for name in (".sframe", "__ksymtab", LIST_SYMBOL, LIST_FUNCTION, JIT_SYMBOL)]
"""Names of sections and symbols: SFrame's; that of Linux kernels, whose stacks the plugin follows without SFrame too;
and those of the lists of run-time code.  A name can be the end of a longer one, with which a linker shares it."""


class _Headers(NamedTuple):
    """The places of the two tables of an ELF file, by the fields of its header."""

    program_at: int
    section_at: int
    program_size: int
    program_count: int
    section_size: int
    section_count: int


def concerns(path: str) -> bool:
    """Return whether SFrame can concern a program with this file; ``True`` if the file cannot be read.

    :param path: the path of a module; without a folder, it is that of no file, like ``[vdso]``.
    """
    if "/" not in path:
        return False
    try:
        with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _concerns(data)
    except (OSError, ValueError, struct.error):
        return True


def _concerns(data: mmap.mmap) -> bool:
    if data[: len(_MAGIC_64)] != _MAGIC_64:
        return False
    order = "<" if data[5] == 1 else ">"
    found = _Headers(*struct.unpack_from(f"{order}QQ6xHHHH", data, 32))
    for number in range(found.program_count):
        (kind,) = struct.unpack_from(f"{order}I", data, found.program_at + number * found.program_size)
        if kind == _PT_GNU_SFRAME:
            return True
    for number in range(found.section_count):
        at = found.section_at + number * found.section_size
        _, kind, _, _, offset, size = struct.unpack_from(f"{order}IIQQQQ", data, at)
        if kind == _SHT_STRTAB and any(data.find(name, offset, offset + size) >= 0 for name in _NAMES):
            return True
    return False
