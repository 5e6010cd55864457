"""Tells from the names in a file whether SFrame can concern a program that has loaded it."""

from __future__ import annotations

import mmap

from sframe_unwind.debugger.of_use import is_of_use
from sframe_unwind.runtime_code.names import JIT_SYMBOL

_JIT = f"{JIT_SYMBOL}\0".encode()


def concerns(path: str) -> bool:
    """Return whether SFrame can concern a program with this file; ``True`` if the file cannot be read.

    That includes programs that register code by GDB's JIT interface: LLDB does not read the CFI of such code, but the
    plugin does.

    :param path: the path of a module; a path without a folder belongs to no file, like ``[vdso]``.
    """
    if "/" not in path:
        return False
    return is_of_use(path) is not False or _has_jit_symbol(path)


def _has_jit_symbol(path: str) -> bool:
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return data.find(_JIT) >= 0
    except (OSError, ValueError):
        return False
