"""Numbers of variable length (DWARF 5, 7.6)."""

from __future__ import annotations

from sframe_unwind.errors import FormatError

MAX_SIZE = 10
"""Maximum size of a number of 64 bits in bytes.  A longer number is an error, and is not read to its end."""
_WORD = 1 << 64


def read_uleb128(data: bytes, offset: int) -> tuple[int, int]:
    """Return an unsigned number, and the offset of the byte after it.

    :raises FormatError: the data ends before the number does, or it has more than 64 bits.
    """
    if offset < len(data) and data[offset] < 0x80:  # nearly all numbers have one byte
        return data[offset], offset + 1
    end = _end(data, offset)
    value = 0
    for byte in reversed(data[offset:end]):
        value = value << 7 | byte & 0x7F
    if value >= _WORD:
        raise FormatError("LEB128 number of more than 64 bits")
    return value, end


def read_sleb128(data: bytes, offset: int) -> tuple[int, int]:
    """Return a signed number, and the offset of the byte after it.

    :raises FormatError: the data ends before the number does, or it has more than 64 bits.
    """
    end = _end(data, offset)
    value = 0
    for byte in reversed(data[offset:end]):
        value = value << 7 | byte & 0x7F
    if data[end - 1] & 0x40:
        value -= 1 << 7 * (end - offset)
    if not -_WORD // 2 <= value < _WORD // 2:
        raise FormatError("LEB128 number of more than 64 bits")
    return value, end


def _end(data: bytes, offset: int) -> int:
    for end, byte in enumerate(data[offset : offset + MAX_SIZE], offset + 1):
        if byte < 0x80:
            return end
    if offset + MAX_SIZE > len(data):
        raise FormatError("the data ends within a LEB128 number")
    raise FormatError(f"LEB128 number of more than {MAX_SIZE} bytes")


def uleb128(value: int) -> bytes:
    """Return the bytes of an unsigned number."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def sleb128(value: int) -> bytes:
    """Return the bytes of a signed number."""
    encoded = bytearray()
    while not -0x40 <= value < 0x40:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value & 0x7F)
    return bytes(encoded)
