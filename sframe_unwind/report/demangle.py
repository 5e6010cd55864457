"""Demangles C++ names with the C++ runtime library of the system, if there is one, and names of Rust.

A mangled name may refer to its earlier parts (Itanium C++ ABI, 5.1.10 "Compression"), so each reference can double the
text: 215 bytes become 553 MB.  The library has no limit, and its work cannot be interrupted.  A name with many
references is therefore demangled by another process, which can be ended.
"""

from __future__ import annotations

import functools
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:  # few names need another process
    import subprocess

_LIBRARY = "libstdc++.so.6"
_LONGEST = 4096
"""Length limit of a mangled name in characters.  The demangler is recursive: a longer name could overflow the stack."""
_LONGEST_TEXT = 1 << 16
"""Length limit of a demangled name in bytes.  The mangled name is shown instead of a longer one."""
_REFERENCE = r"S[0-9A-Z]*_|T[0-9]*_|Dp|s[ZP]"
"""Substitutions, template parameters, and expansions of parameter packs."""
_FEW = 8
"""Maximum number of references in a name that is demangled in this process: they give at most 1 MB of text."""
_SECONDS = 1
"""Processor time for a name; with the rest of the second that has begun, which the kernel's limit includes."""
_MEMORY = 256 << 20


@functools.cache
def demangle(name: str) -> str:
    """Return the demangled name of a function.

    The name itself is returned if it is not a mangled name of C++ or Rust, or if demangling it would take more than a
    second or two of processor time, 256 MB, or 64 KB of text.
    """
    if not name.startswith(("_Z", "_R")) or len(name) > _LONGEST:
        return name
    from sframe_unwind.report.rust_names import demangle_rust  # the other process has this file alone

    if (of_rust := demangle_rust(name)) is not None:
        return of_rust
    if name.startswith("_R"):
        return name
    if len(re.findall(_REFERENCE, name)) > _FEW:
        return _process().demangle(name)
    translate = _demangler()
    return translate(name) if translate else name


class _Process:
    """Demangles names in another process, which is started for the first name, and again after it was ended."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[bytes] | None = None

    def demangle(self, name: str) -> str:
        import subprocess

        if self._running is None or self._running.poll() is not None:
            with suppress(OSError):
                self._running = subprocess.Popen(
                    [sys.executable, "-I", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
        running = self._running
        if running is None or running.stdin is None or running.stdout is None:
            return name
        with suppress(OSError):  # the process has ended
            running.stdin.write(_line(name))
            running.stdin.flush()
            answer = running.stdout.readline()
            if answer.endswith(b"\n"):
                return answer[:-1].decode("utf-8", "surrogateescape")
        running.kill()  # it exceeded its memory or its time, and is ending
        running.wait()
        return name


@functools.cache
def _process() -> _Process:
    return _Process()


def _line(text: str) -> bytes:
    return text.replace("\n", " ").encode("utf-8", "surrogateescape") + b"\n"


@functools.cache
def _demangler() -> Callable[[str], str] | None:
    import ctypes  # few programs have names of C++

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
            text = ctypes.string_at(found)
        finally:
            free(found)
        return text.decode("utf-8", "backslashreplace") if len(text) <= _LONGEST_TEXT else name

    return demangled


def _serve() -> None:
    """Answer each line of standard input with the demangled name.

    Too large an output, or too much work, ends the process.
    """
    import resource
    import time

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    translate = _demangler() or str
    for line in sys.stdin.buffer:
        until = int(time.process_time()) + 1 + _SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (until if most == resource.RLIM_INFINITY else min(until, most), most))
        name = line.decode("utf-8", "surrogateescape").rstrip("\n")
        sys.stdout.buffer.write(_line(translate(name)))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _serve()
