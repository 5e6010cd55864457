"""C++ names as people write them, by the C++ runtime library where the system has one."""

from __future__ import annotations

import ctypes
import functools
from typing import Callable

_LIBRARY = "libstdc++.so.6"
_LONGEST = 4096
"""Names beyond this are left as they are: the demangler's stack is not ours to risk."""


@functools.cache
def demangle(name: str) -> str:
    """Return a function's name without the encoding of its types; the name itself where it is no C++ name."""
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
