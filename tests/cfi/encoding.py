"""Call frame information written byte by byte: a CIE, an FDE, and the instructions of both."""

from __future__ import annotations

import struct

from sframe_unwind.arch import BY_NAME, Arch
from sframe_unwind.cfi.records import CfiFunction, Records

START, SIZE = 0x1000, 0x100
"""The function that is described."""
AMD64, AARCH64, S390X = BY_NAME["amd64"], BY_NAME["aarch64"], BY_NAME["s390x"]
ID32, ID64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
ENTRY = b"\x0c\x07\x08\x90\x01"
"""First instructions of CIEs for AMD64: the CFA is rsp + 8 (register 7), the return address (16) is at CFA - 8."""

PLENTY = b"".join(
    (
        *(b"\x41\x0e\x10\x86\x02", b"\x02\x08\x0d\x06", b"\x03\x01\x01\x0c\x07\x18", b"\x04\x01\0\0\0\x12\x06\x7e"),
        *(b"\x0a\x05\x03\x04\x11\x0c\x7d\x07\x0d\x08\x0e\x09\x0f\x03", b"\x42\x13\x7c\x14\x03\x01\x15\x03\x7f\x0b"),
        *(b"\x44\x0f\x03\x77\x08\x06\x10\x03\x02\x77\x10", b"\x45\x16\x03\x02\x76\x08\x2e\x10\x2f\x03\x02"),
        *(b"\x46\xc3\x06\x06\x06\x0c\x0c\x07\x08", b"\x48\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22\0\0"),
    )
)
"""Instructions of every kind that all architectures have."""


def uleb(value: int) -> bytes:
    """Return an unsigned LEB128 number (DWARF 5, 7.6)."""
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + uleb(rest) if rest else bytes([low])


def sleb(value: int) -> bytes:
    """Return a signed LEB128 number."""
    low, rest = value & 0x7F, value >> 7
    done = rest == -(low >> 6)
    return bytes([low]) if done else bytes([low | 0x80]) + sleb(rest)


def debug_frame(
    code: bytes,
    initial: bytes = ENTRY,
    version: int = 4,
    wide: bool = False,
    factors: tuple[int, int] = (1, -8),
    column: int = 16,
    mark: str = "<",
) -> tuple[bytes, int]:
    """Return a ``.debug_frame`` of one CIE and one FDE, and the offset of the latter.

    :param code: the FDE's instructions; ``initial`` are those of the CIE.
    :param wide: 64-bit DWARF.
    :param factors: code and data alignment factor.
    :param column: number of the return address column.
    """
    offset = "Q" if wide else "I"
    sizes = b"\x08\x00" if version == 4 else b""
    register = bytes([column]) if version == 1 else uleb(column)
    identity = struct.pack(mark + offset, ID64 if wide else ID32)
    cie = identity + bytes([version, 0]) + sizes + uleb(factors[0]) + sleb(factors[1]) + register + initial
    fde = struct.pack(mark + offset + "QQ", 0, START, SIZE) + code
    first = _record(cie, wide, mark)
    return first + _record(fde, wide, mark), len(first)


def _record(body: bytes, wide: bool, mark: str) -> bytes:
    head = struct.pack(mark + "IQ", ID32, len(body)) if wide else struct.pack(mark + "I", len(body))
    return head + body


def decoded(code: bytes, arch: Arch = AMD64, **options: object) -> CfiFunction:
    """Return the function of an FDE with the given instructions."""
    mark = "<" if arch.byteorder == "little" else ">"
    data, offset = debug_frame(code, mark=mark, **options)  # type: ignore[arg-type]
    return Records(data, 0, arch, debug_frame=True).fde(offset).decode()
