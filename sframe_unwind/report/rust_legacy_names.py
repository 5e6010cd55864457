"""Demangles the legacy names of Rust: those of C++ whose last part is a hash.  The text has no hash, as in GDB."""

from __future__ import annotations

import re
import string

_LEGACY = "_ZN"
_HASH = re.compile(r"17h[0-9a-f]{16}E(?:\.|$)")
"""The last part of a legacy name: a hash, with its length before it."""
_LENGTH = re.compile(r"0|[1-9][0-9]*")
_ESCAPE = re.compile(r"\$(\w+)\$|\.\.")
_ESCAPES = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}


def demangle_legacy(name: str) -> str | None:
    """Return the demangled name of a Rust function; ``None``: the name is not a legacy one, or is malformed."""
    end = _HASH.search(name) if name.startswith(_LEGACY) else None
    return _from_parts(name[len(_LEGACY) : end.start()]) if end else None


def _from_parts(parts: str) -> str | None:
    """Return the name from its parts, each with its length before it."""
    found, at = [], 0
    while at < len(parts):
        length = _LENGTH.match(parts, at)
        if length is None:
            return None
        start, at = length.end(), length.end() + int(length[0])
        if at > len(parts):
            return None
        part = parts[start:at]
        found.append(_ESCAPE.sub(_unescaped, part[1:] if part.startswith("_$") else part))
    return "::".join(found) or None


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    if code is None:
        return "::"
    is_number = code[0] == "u" and all(digit in string.hexdigits for digit in code[1:]) and 1 < len(code) < 7
    return chr(int(code[1:], 16)) if is_number else _ESCAPES.get(code, escape[0])
