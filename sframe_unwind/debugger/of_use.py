"""Tells whether a plugin has anything to do for a file.

A glance at the file suffices for nearly all.  Where a name in it concerns the plugin, or its headers are unusual,
:mod:`sframe_unwind.debugger.file_check` is imported, and decides.
"""

from __future__ import annotations

import functools
import os

from sframe_unwind.debugger.glance import may_be_of_use, state_of

_LIBRARY = "unwind"
"""A part of the names of libunwind's own files, which do not call it."""


def is_of_use(path: str) -> bool | None:
    """Return whether a file has SFrame, is a Linux kernel, or registers code at run time; ``None``: it is unreadable.

    A file without section headers has the segment ``PT_GNU_SFRAME``; object files, kernel modules among them, and the
    output of some linkers have only the section.
    """
    try:
        return _is_of_use(path, state_of(path))
    except (OSError, ValueError):
        return None


@functools.lru_cache(maxsize=1024)
def _is_of_use(path: str, _state: tuple[int, ...]) -> bool:
    may_register = _LIBRARY not in os.path.basename(path)
    if not may_be_of_use(path, may_register):
        return False
    from sframe_unwind.debugger.file_check import has_use

    return has_use(path, may_register)
