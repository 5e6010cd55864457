"""CFI records of one function, with its address in each form."""

from __future__ import annotations

import struct

AT = 0x7F00_0000_1000
"""Address of the records."""
START, END = 0x7F00_0010_0000, 0x7F00_0010_0040
"""The function that they describe."""


def records(mark: str, encoding: int, location: bytes, extended: bool = False, augmentation: bytes = b"zR") -> bytes:
    """Return a CIE and an FDE of AMD64's rules: CFA rsp+8, from offset 1 on rsp+16 with rbp saved."""

    def record(body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)  # DW_CFA_nop
        length = struct.pack(mark + "IQ", 0xFFFFFFFF, len(body)) if extended else struct.pack(mark + "I", len(body))
        return length + body

    # version 1, augmentation, code alignment 1, data alignment -8, return address in 16, encoding
    common = b"\0\0\0\0\x01" + augmentation + b"\0" + b"\x01\x78\x10" + b"\x01" + bytes([encoding])
    cie = record(common + b"\x0c\x07\x08" + b"\x90\x01")  # def_cfa rsp+8; offset r16 at cfa-8
    distance = len(cie) + (12 if extended else 4)
    code = b"\x41\x0e\x10\x86\x02"  # advance 1; def_cfa_offset 16; offset rbp at cfa-16
    return cie + record(struct.pack(mark + "I", distance) + location + b"\0" + code)


SIZE = END - START
FORMS = {
    "absolute": (0x00, struct.pack("<QQ", START, SIZE)),
    "absolute of 8 bytes": (0x04, struct.pack("<QQ", START, SIZE)),
    "relative to data": (0x3B, struct.pack("<iI", 0x10_0000, SIZE)),
    "relative to data, 8 bytes": (0x3C, struct.pack("<qQ", 0x10_0000, SIZE)),
}
