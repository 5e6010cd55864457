"""Sections that cost time or memory, by name; run as a program, it decodes one of them within a memory limit.

python -m tests.cfi.hostile NAME BYTES
"""

from __future__ import annotations

import resource
import struct
import sys
from pathlib import Path
from typing import Callable

from sframe_unwind.cfi.records import Records
from sframe_unwind.errors import FormatError, SFrameError
from tests.cfi.encoding import AMD64, debug_frame, uleb

REGISTERS = b"".join(b"\x05" + uleb(1000 + number) + b"\1" for number in range(1000))
"""``DW_CFA_offset_extended`` for 1,000 registers."""
TOO_MUCH = "a function with more than 65,536 different rows, or 1,048,576 registers in them"
TOO_LONG = "LEB128 number of more than 10 bytes in call frame instruction 0xe"


def _overlapping() -> bytes:
    """Return 20,000 CIEs that all end at the same place, and an FDE for each."""
    count = 20_000
    cie = struct.pack("<I", 0xFFFFFFFF) + b"\x04\0\x08\0\x01\x78\x10\0"
    cies = (struct.pack("<I", 16 * (count - number) - 4) + cie for number in range(count))
    fdes = (struct.pack("<IIQQ", 20, 16 * number, 0x1000 * number, 8) for number in range(count))
    return b"".join(cies) + b"".join(fdes)


def _function(code: bytes) -> bytes:
    return debug_frame(code)[0]


INPUTS: dict[str, tuple[Callable[[], bytes], str]] = {
    "remembered states": (lambda: _function(REGISTERS + b"\x0a" * 100_000), "1 rows"),
    "restored states": (lambda: _function(REGISTERS + b"\x0a" * 100_000 + b"\x41\x0b" * 100_000), "1 rows"),
    "registers": (lambda: _function(b"".join(b"\x05" + uleb(n) + b"\1\x41" for n in range(200_000))), TOO_MUCH),
    "rows": (lambda: _function(b"".join(b"\x0e" + uleb(n) + b"\x41" for n in range(500_000))), TOO_MUCH),
    "the same rows": (lambda: _function(b"\x41\x0e\x08\x41\x0e\x10" * 100_000), "200001 rows"),
    "padding": (lambda: _function(bytes(5_000_000)), "1 rows"),
    "what is ignored": (lambda: _function(b"\0\x2e\1" * 500_000), "1 rows"),
    "a long number": (lambda: _function(b"\x0e" + b"\xff" * 1_000_000 + b"\1"), TOO_LONG),
    "a long number of zeros": (lambda: _function(b"\x0e" + b"\x80" * 1_000_000 + b"\0"), TOO_LONG),
    "overlapping CIEs": (_overlapping, "the CIEs overlap"),
}
"""The function that makes each section, and the expected end of the message."""


def main() -> None:
    """Decode an input; print the result."""
    data = INPUTS[sys.argv[1]][0]()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    print(decode(data))


def decode(data: bytes) -> str:
    """Decode a section; return the number of rows of the last function, or the last error."""
    section = Records(data, 0, AMD64, debug_frame=True)
    problems: list[FormatError] = []
    said = ""
    try:
        for _, fde in section.fdes(True, problems):
            said = f"{len(fde.decode().rows)} rows"
    except SFrameError as error:
        return str(error)
    return str(problems[-1]) if problems else said


if __name__ == "__main__":
    main()
