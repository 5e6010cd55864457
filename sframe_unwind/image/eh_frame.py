"""Which addresses have DWARF CFI in ``.eh_frame``: only whether, not what it says.

Mode ``fallback`` asks this of a running process for every pc, so it is answered from the binary search table that
linkers put beside the CFI (``.eh_frame_hdr``, Linux Standard Base, exception frames); decoding all of the CFI
through pyelftools would take seconds for a large library, and needs pyelftools.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import NamedTuple

from sframe_unwind.errors import FormatError
from sframe_unwind.memory import STRUCT_MARKS, Data, take

_TABLE_ENCODING = 0x3B
"""DW_EH_PE_datarel | DW_EH_PE_sdata4: the one encoding of the search table that linkers write."""
_OMITTED = 0xFF
_FORMATS = {0x00: "Q", 0x02: "H", 0x03: "I", 0x04: "Q", 0x0A: "h", 0x0B: "i", 0x0C: "q"}
_PCREL = 0x10


class SectionData(NamedTuple):
    """A section in memory."""

    address: int
    data: Data


class EhFrame:
    """The ``.eh_frame`` of one module.

    :param frames: the section.
    :param index: ``.eh_frame_hdr``, where the module has one.
    :param byteorder: ``"little"`` or ``"big"``.
    """

    def __init__(self, frames: SectionData, index: SectionData | None, byteorder: str) -> None:
        self._frames = frames
        self._mark = STRUCT_MARKS[byteorder]
        self._index = index if index is not None and index.data[:4][3:] == bytes([_TABLE_ENCODING]) else None
        self._ranges: list[tuple[int, int, int]] | None = None
        self._pointer_formats: dict[int, int] = {}

    def covers(self, pc: int) -> bool:
        """Return whether some FDE contains the address.

        :raises FormatError: the CFI is malformed where it was looked at.
        :raises MemoryReadError: it cannot be read.
        """
        return self.record(pc) is not None

    def record(self, pc: int) -> int | None:
        """Return the address of the FDE that contains an address, ``None`` where none does.

        :raises FormatError: the CFI is malformed where it was looked at.
        :raises MemoryReadError: it cannot be read.
        """
        if self._index is not None:
            record = self._search(self._index, pc)
            if record is None or pc >= self._range(record - self._frames.address)[1]:
                return None
            return record
        if self._ranges is None:
            self._ranges = sorted(self._scan())
        at = bisect_right(self._ranges, (pc, 1 << 64)) - 1
        return self._ranges[at][2] if at >= 0 and pc < self._ranges[at][1] else None

    def _search(self, index: SectionData, pc: int) -> int | None:
        """Return the address of the last FDE that starts at or before the address."""
        head = index.data[:12]
        if len(head) < 12 or head[2] != 0x03 or head[1] == _OMITTED:
            raise FormatError(f".eh_frame_hdr begins with {head[:4].hex()}, expected a table of 4-byte pairs")
        (count,) = struct.unpack(self._mark + "I", head[8:12])
        return search_table(index.data, 12, count, index.address, self._mark, pc)

    def _scan(self) -> list[tuple[int, int, int]]:
        ranges, offset = [], 0
        while offset + 4 <= len(self._frames.data):
            length, body = self._length(offset)
            if length == 0:
                break
            if struct.unpack(self._mark + "I", take(self._frames.data, body, 4, "CFI entry"))[0]:
                ranges.append((*self._range(offset), self._frames.address + offset))
            offset = body + length
        return ranges

    def _length(self, offset: int) -> tuple[int, int]:
        """Return the length in bytes of the entry at an offset, and where what it counts begins."""
        (length,) = struct.unpack(self._mark + "I", take(self._frames.data, offset, 4, "CFI entry"))
        if length != 0xFFFFFFFF:
            return length, offset + 4
        return struct.unpack(self._mark + "Q", take(self._frames.data, offset + 4, 8, "CFI entry"))[0], offset + 12

    def _range(self, offset: int) -> tuple[int, int]:
        """Return start and end address of the FDE at an offset."""
        _, body = self._length(offset)
        (distance,) = struct.unpack(self._mark + "I", take(self._frames.data, body, 4, "FDE"))
        encoding = self._pointer_encoding(body - distance)
        layout = _FORMATS.get(encoding & 0x0F)
        if layout is None:
            raise FormatError(f"FDE with pointer encoding {encoding:#x}", offset)
        pair = struct.Struct(self._mark + layout + layout.upper())  # the length is never negative
        start, size = pair.unpack(take(self._frames.data, body + 4, pair.size, "FDE"))
        if encoding & 0x70 == _PCREL:
            start += self._frames.address + body + 4
        return start, start + size

    def _pointer_encoding(self, offset: int) -> int:
        known = self._pointer_formats.get(offset)
        if known is None:
            known = self._pointer_formats[offset] = self._read_pointer_encoding(offset)
        return known

    def _read_pointer_encoding(self, offset: int) -> int:
        """Return how the CIE at an offset says that its FDEs' addresses are written."""
        length, body = self._length(offset)
        entry = take(self._frames.data, body, min(length, 256), "CIE")
        try:
            at = augmentation_fields(entry).get("R")
        except FormatError as error:
            raise error.at(offset) from error
        return entry[at] if at is not None else 0


def search_table(table: Data, offset: int, count: int, base: int, mark: str, pc: int) -> int | None:
    """Return the address of the last FDE that starts at or before an address.

    :param table: data with pairs of 4-byte numbers at ``offset``, sorted: where code starts, where its FDE is.
    :param base: what both count from.
    :param mark: byte order, as :mod:`struct` has it.
    :raises FormatError: the table ends before it should.
    """
    pair = struct.Struct(mark + "ii")
    low, high = 0, min(count, (len(table) - offset) // pair.size)
    found = None
    while low < high:
        middle = (low + high) // 2
        start, entry = pair.unpack(take(table, offset + middle * pair.size, pair.size, "entry of a table of FDEs"))
        if base + start <= pc:
            found = base + entry
            low = middle + 1
        else:
            high = middle
    return found


def augmentation_fields(entry: bytes) -> dict[str, int]:
    """Return where in a CIE the data of each letter of its augmentation begins; empty where there is no such data.

    :param entry: the CIE without its length.
    :raises FormatError: a letter is not known, or the CIE ends before.
    """
    augmentation, _, rest = entry[5:].partition(b"\0")
    if not augmentation.startswith(b"z"):
        return {}
    for _ in range(2):  # code and data alignment
        rest = _skip_leb128(rest)
    rest = rest[1:] if entry[4] == 1 else _skip_leb128(rest)  # return address register
    rest = _skip_leb128(rest)  # length of what follows
    fields = {}
    for letter in augmentation[1:].decode("latin-1"):
        fields[letter] = len(entry) - len(rest)
        if letter in "RL":
            size = 1
        elif letter == "P":
            size = 1 + struct.calcsize("<" + _FORMATS.get(take(rest, 0, 1, "augmentation of a CIE")[0] & 0x0F, "Q"))
        elif letter in "SBG":
            size = 0
        else:
            raise FormatError(f"CIE with unknown augmentation {augmentation.decode('latin-1')!r}")
        take(rest, 0, size, "augmentation of a CIE")
        rest = rest[size:]
    return fields


def _skip_leb128(data: bytes) -> bytes:
    for position, byte in enumerate(data):
        if byte < 0x80:
            return data[position + 1 :]
    raise FormatError("LEB128 number without an end in a CIE")
