"""Reads the names of generated code in a jitdump file, which run-time compilers write for ``perf inject --jit``.

The format is that of ``tools/perf/Documentation/jitdump-specification.txt`` of Linux: a header, and records of code
that was made or moved.
"""

from __future__ import annotations

import re

from sframe_unwind.address import ByteOrder
from sframe_unwind.errors import FormatError
from sframe_unwind.perf.cursor import Cursor

FILE = re.compile(r"/jit-\d+\.dump$")
"""The end of the path of such a file.  The compiler maps its start, which tells perf about it."""

_MAGICS: dict[bytes, ByteOrder] = {b"DTiJ": "little", b"JiTD": "big"}
_HEADER, _HEAD = 40, 16
_LOAD, _MOVE = 0, 1


def read_jitdump(data: bytes) -> dict[int, tuple[int, str]]:
    """Return end address (exclusive) and name of each function by its start; a later function replaces an earlier one.

    Records after a malformed one are left out: the compiler may be writing it.
    """
    byteorder = _MAGICS.get(data[:4])
    found: dict[int, tuple[int, str]] = {}
    if byteorder is None:
        return found
    at = int.from_bytes(data[8:12], byteorder) or _HEADER
    while at + _HEAD <= len(data):
        head = Cursor(data[at : at + _HEAD], byteorder, "a jitdump record", at)
        kind, size = head.u32(), head.u32()
        if size < _HEAD:
            break
        body = Cursor(data[at + _HEAD : at + size], byteorder, "a jitdump record", at + _HEAD)
        try:
            _take(kind, body, found)
        except FormatError:
            break
        at += size
    return found


def _take(kind: int, body: Cursor, found: dict[int, tuple[int, str]]) -> None:
    if kind not in (_LOAD, _MOVE):
        return
    body.skip(2)  # process and thread, address in the file
    if kind == _LOAD:
        start, size = body.u64(), body.u64()
        body.skip(1)  # number of the function
        found[start] = start + size, body.text()
    else:
        old, new, size = body.u64(), body.u64(), body.u64()
        _, name = found.pop(old, (0, ""))
        found[new] = new + size, name
