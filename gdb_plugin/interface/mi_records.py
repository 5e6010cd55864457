"""The text in the output records of GDB/MI ("GDB/MI Stream Records" in GDB's manual)."""

from __future__ import annotations

import re

_RECORD = re.compile(r'^~"((?:[^"\\]|\\.)*)"$', re.MULTILINE)
"""A record of the console stream."""
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_CONTROL = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"f": b"\f", b"b": b"\b", b"a": b"\a", b"e": b"\33"}


def console_text(output: str) -> str:
    """Return the text of the console stream in an output; one without records is the text itself."""
    if not output.startswith('~"'):
        return output
    return "".join(_unescaped(record) for record in _RECORD.findall(output))


def _unescaped(record: str) -> str:
    """Return the text of a record: a byte that is not printable is three octal digits, or a letter as in C."""

    def character(escape: re.Match[bytes]) -> bytes:
        code = escape[1]
        return bytes([int(code, 8)]) if len(code) == 3 else _CONTROL.get(code, code)

    return _ESCAPE.sub(character, record.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
