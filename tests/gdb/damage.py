"""Makes copies of a sample with a damaged `.sframe`."""

from __future__ import annotations

import io
import shutil
import struct
from pathlib import Path
from typing import Callable, NamedTuple

from elftools.elf.elffile import ELFFile

from sframe_unwind.sframe.constants import AbiNumber
from sframe_unwind.sframe.encode import SectionSpec, describe, encode
from sframe_unwind.sframe.section import Section

_SIZE_FIELD = 32
"""Offset of sh_size in a section header of 64-bit ELF."""
_AUX_LENGTH = 7
"""Offset of the length of the auxiliary header in SFrame's header; the numbers and offsets follow."""
_VERSION, _ABI = 2, 4


class Sample(NamedTuple):
    """The section of a sample."""

    data: bytes
    address: int


Change = Callable[[Sample], bytes]


def _truncated(size: int) -> Change:
    return lambda sample: sample.data[:size]


def _patched(offset: int, value: bytes) -> Change:
    return lambda sample: sample.data[:offset] + value + sample.data[offset + len(value) :]


def _foreign(abi: AbiNumber) -> Change:
    """Return the same functions as a linker for another ABI would have written them."""

    def change(sample: Sample) -> bytes:
        described = describe(Section(sample.data, sample.address))
        tables = tuple(table._replace(abi=abi) for table in described.tables)
        return encode(SectionSpec(described.address, tables, described.size))

    return change


def _rows_overwritten(sample: Sample) -> bytes:
    """Overwrite all rows by bytes that cannot be rows: info bytes with the invalid word size."""
    (table,) = Section(sample.data, sample.address).tables
    start = table.header.fre_offset + 28
    return sample.data[:start] + b"\xff" * (len(sample.data) - start)


CHANGES: dict[str, tuple[Change, str]] = {
    "header cut": (_truncated(20), r""),
    "table cut": (_truncated(60), r""),
    "magic": (_patched(0, b"\x12\x34"), r"0x1234|3412|1234"),
    "version": (_patched(_VERSION, b"\x09"), r"version 9"),
    "unknown ABI": (_patched(_ABI, b"\x77"), r"0x77|119"),
    "unknown flags": (_patched(3, b"\xf0"), r"0x[cdef]0|flags"),
    "number of FDEs": (_patched(8, struct.pack("<I", 0xFFFFFFFF)), r""),
    "offset of the FDEs": (_patched(20, struct.pack("<I", 0x7FFFFFF0)), r""),
    "offset of the rows": (_patched(24, struct.pack("<I", 0xFFFFFFF0)), r""),
    "auxiliary header": (_patched(_AUX_LENGTH, b"\xff"), r""),
    "AArch64": (_foreign(AbiNumber.AARCH64_ENDIAN_LITTLE), r"aarch64"),
    "s390x": (_foreign(AbiNumber.S390X_ENDIAN_BIG), r"s390x"),
    "rows": (_rows_overwritten, r""),
}
"""The changes of the section, each with the text that the message must contain."""


def damaged(executable: Path, change: Change, folder: Path) -> Path:
    """Return the path of a changed copy; a section that became shorter ends earlier."""
    content = bytearray(executable.read_bytes())
    elf = ELFFile(io.BytesIO(content))
    number = elf.get_section_index(".sframe")
    header = elf.get_section(number)
    start, size = header["sh_offset"], header["sh_size"]
    data = change(Sample(bytes(content[start : start + size]), header["sh_addr"]))
    assert len(data) <= size
    content[start : start + size] = data.ljust(size, b"\0")
    at = elf["e_shoff"] + number * elf["e_shentsize"] + _SIZE_FIELD
    content[at : at + 8] = len(data).to_bytes(8, "little" if elf.little_endian else "big")
    copy = folder / executable.name
    copy.write_bytes(content)
    shutil.copymode(executable, copy)
    return copy
