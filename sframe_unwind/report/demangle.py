"""Demangles C++ names with the C++ runtime library of the system, if there is one."""

from __future__ import annotations

import ctypes
import functools
from typing import Callable

_LIBRARY = "libstdc++.so.6"
_LONGEST = 4096
"""Length limit in characters.  The demangler is recursive, and a longer name could overflow the stack."""


@functools.cache
def demangle(name: str) -> str:
    """Return the demangled name of a function, or the name itself if it is not a mangled C++ name."""
    if not name.startswith("_Z") or len(name) > _LONGEST:
        return name
    translate = _demangler()
    return translate(name) if translate else name


@functools.cache
def _demangler() -> Callable[[str], str] | None:
    try:
        library = ctypes.CDLL(_LIBRARY)
        translate, free = library.__cxa_demangle, ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return None
    translate.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    translate.restype = ctypes.c_void_p
    free.argtypes, free.restype = [ctypes.c_void_p], None

    def demangled(name: str) -> str:
        status = ctypes.c_int()
        found = translate(name.encode("utf-8", "surrogateescape"), None, None, ctypes.byref(status))
        if not found:
            return name
        try:
            return ctypes.string_at(found).decode("utf-8", "backslashreplace")
        finally:
            free(found)

    return demangled
