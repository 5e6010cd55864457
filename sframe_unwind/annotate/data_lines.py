"""Instructions that a source writes as data, such as ``.byte 0xf3,0xc3``: assemblers give these no line."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sframe_unwind.address import ByteOrder

_DATA = re.compile(r"(?:[\w.$]+:\s*)*\.(\w+)\s+([^#;/]*)")
_SIZES = {
    "byte": (1,),
    **dict.fromkeys(("short", "hword", "value", "2byte"), (2,)),
    **dict.fromkeys(("long", "int", "4byte", "inst"), (4,)),
    **dict.fromkeys(("quad", "8byte", "xword"), (8,)),
    "word": (2, 4),  # it depends on the machine
}
"""The possible sizes of a number in each directive, in bytes."""


def data_of(line: str, byteorder: ByteOrder) -> list[bytes]:
    """Return the bytes that a line of source may write as numbers; none: it writes none, or symbols too."""
    found = _DATA.match(line.strip())
    if found is None or found[1] not in _SIZES:
        return []
    try:
        numbers = [_number(word.strip()) for word in found[2].split(",")]
    except ValueError:
        return []
    return [_encoded(numbers, size, byteorder) for size in _SIZES[found[1]]]


def _number(text: str) -> int:
    is_octal = text[:1] == "0" and text.isdecimal()
    return int(text, 8 if is_octal else 0)


def _encoded(numbers: Iterable[int], size: int, byteorder: ByteOrder) -> bytes:
    return b"".join((number & (1 << 8 * size) - 1).to_bytes(size, byteorder) for number in numbers)
