"""The records of a section with call frame information: CIEs and FDEs, found and decoded.

``.eh_frame``: Linux Standard Base Core 5.0, 10.6.  ``.debug_frame``: DWARF 5, 6.4.1.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import BY_NAME, Arch
from sframe_unwind.cfi import cie as cies
from sframe_unwind.cfi.cie import Cie
from sframe_unwind.cfi.constants import EXTENDED_LENGTH, PE_APPLICATION, PE_PCREL
from sframe_unwind.cfi.instructions import RowDecoder
from sframe_unwind.cfi.leb128 import read_uleb128
from sframe_unwind.cfi.pointers import Bases, check_supported, fixed_format, origin, read_number
from sframe_unwind.cfi.row import Row
from sframe_unwind.errors import FormatError, counted
from sframe_unwind.memory import STRUCT_MARKS, Data, take
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import UnwindRule

MAX_RECORD = 1 << 24
"""Maximum size of one record in bytes; a longer one is damaged.  The largest in real programs have some 100,000."""
_CIE_ROOM = 1 << 16
"""Number of bytes by which all CIEs together may exceed their section."""
_HEADS = {order: struct.Struct(mark + "II") for order, mark in STRUCT_MARKS.items()}
"""Length of a record, and distance to its CIE."""
_HEAD_SIZE = 8
_KEPT = 16
"""Number of different CIEs whose decoders are kept for other sections."""


class Common(NamedTuple):
    """A CIE, and the decoder for the FDEs that refer to it."""

    cie: Cie
    decoder: RowDecoder
    extent: struct.Struct | None
    """Start and size of a function; ``None``: they are LEB128 numbers."""
    is_pcrel: bool
    """A start is relative to its own address."""
    base: int
    """Otherwise, the address to which it is relative."""
    usual: struct.Struct | None
    """Start, size, and size of the augmentation data in one byte; ``None``: the FDEs are laid out in another way."""


@lru_cache(_KEPT)
def _common_of(cie: Cie, arch: str, bases: Bases) -> Common:
    """Return what the FDEs that refer to a CIE share; equal CIEs share it, as most files have the same one.

    :param arch: name of the architecture.
    :raises UnsupportedError: the encoding of the addresses is not known.
    :raises FormatError: the CIE's own instructions cannot be executed.
    """
    check_supported(cie.encoding, bases)
    layout = fixed_format(cie.encoding)
    extent = STRUCT_MARKS[bases.byteorder] + layout + layout.upper() if layout else ""
    return Common(
        cie=cie,
        decoder=RowDecoder(cie, BY_NAME[arch], bases),
        extent=struct.Struct(extent) if extent else None,
        is_pcrel=cie.encoding & PE_APPLICATION == PE_PCREL,
        base=origin(cie.encoding, 0, bases),
        usual=struct.Struct(extent + "B") if extent and cie.augmented else None,
    )


class Fde(NamedTuple):
    """One FDE: the function that it describes, and its instructions."""

    start: int
    end: int
    """Address after the function's last byte."""
    common: Common
    code: bytes
    """Its instructions."""
    code_address: int
    """Address of the instructions in memory."""

    def decode(self) -> CfiFunction:
        """Return the function with its rows.

        :raises UnsupportedError: an instruction is unknown.
        :raises FormatError: one is malformed.
        """
        offsets, rows = self.common.decoder.decode(self.code, self.code_address, self.start)
        return CfiFunction(
            start=self.start, end=self.end, offsets=offsets, rows=rows, cie=self.common.cie, code=self.code
        )


class CfiFunction(NamedTuple):
    """A function with its rows, decoded from its FDE."""

    start: int
    end: int
    """Address after the last byte."""
    offsets: tuple[int, ...]
    """Start of each row, in bytes from the start of the function; ascending, and the first is 0."""
    rows: tuple[Row, ...]
    cie: Cie
    code: bytes
    """The instructions from which the rows were decoded."""

    def row_offset(self, pc: int) -> int:
        """Return the start of the row for an address of the function, in bytes from the function's start."""
        return self.offsets[bisect_right(self.offsets, pc - self.start) - 1]

    def row_end(self, pc: int) -> int:
        """Return the address after the last one of the row for an address of the function."""
        number = bisect_right(self.offsets, pc - self.start)
        return self.start + self.offsets[number] if number < len(self.offsets) else self.end

    def row_at(self, pc: int) -> Row:
        """Return the row for an address of the function."""
        return self.rows[bisect_right(self.offsets, pc - self.start) - 1]

    def rule_at(self, pc: int, arch: Arch) -> UnwindRule:
        """Return the rule for an address of the function.

        :raises UnsupportedExpressionError: CFA or return address is not a place.
        :raises FormatError: an expression is malformed, or there is no CFA.
        """
        return self.row_at(pc).rule(arch, self.cie.return_column, pc)


class _Record(NamedTuple):
    body_offset: int
    """Section offset of the body, whose size the length gives."""
    body: bytes
    id_size: int
    """Size of the CIE id, or of the pointer to the CIE, at the start of the body, in bytes."""
    cie: int | None
    """Section offset of an FDE's CIE; ``None``: the record is a CIE itself."""


class Records:
    """The records of one section.

    :param data: the section.
    :param address: address of the section in memory.
    :param arch: architecture of the code that it describes.
    :param debug_frame: it is ``.debug_frame``, not ``.eh_frame``.
    :param data_base: see :class:`sframe_unwind.cfi.pointers.Bases`.
    """

    def __init__(
        self, data: Data, address: int, arch: Arch, debug_frame: bool = False, data_base: int | None = None
    ) -> None:
        self.address = address
        self._data = data
        self._arch = arch.name
        self._debug_frame = debug_frame
        self._bases = Bases(arch.byteorder, data_base)
        self._order = arch.byteorder
        self._read_head = _HEADS[arch.byteorder].unpack_from
        self._commons: dict[int, Common | FormatError] = {}
        self._cie_room = min(len(data), MAX_RECORD) + _CIE_ROOM

    def fde(self, offset: int) -> Fde:
        """Return the FDE whose record, including its length, begins at a section offset.

        :raises UnsupportedError: its CIE is of an unknown kind.
        :raises FormatError: there is no FDE, or it is malformed.
        """
        usual = self._usual(offset)
        if usual is not None:
            return usual
        record = self._record(offset, "an FDE")
        if record.cie is None:
            raise FormatError(f"expected an FDE at {self._place(offset)}, found a CIE")
        return self._fde(offset, record, self._common(record.cie))

    def end_of(self, offset: int) -> int:
        """Return the section offset after the FDE at a section offset.

        :raises FormatError: there is no FDE.
        """
        record = self._record(offset, "an FDE")
        return record.body_offset + len(record.body)

    def fdes(self, size_known: bool, problems: list[FormatError], end: int | None = None) -> Iterator[tuple[int, Fde]]:
        """Yield the section offset of each FDE, and the FDE.

        :param size_known: the data is exactly the section, so a record of length 0 is not its end.
        :param problems: errors in single FDEs are appended to it; these FDEs are left out.
        :param end: section offset at which the records end; ``None``: they end with the data.
        :raises FormatError: a record does not end within the section.
        """
        self._data = self._data[:end]  # all of it is needed now
        offset = 0
        while offset + 4 <= len(self._data):
            usual = self._usual(offset)
            if usual is not None:
                yield offset, usual
                offset = usual.code_address + len(usual.code) - self.address
                continue
            if self._data[offset : offset + 4] == b"\0\0\0\0":
                if not size_known:
                    return
                offset += 4
                continue
            record = self._record(offset, "a record")
            if record.cie is not None:
                try:
                    yield offset, self._fde(offset, record, self._common(record.cie))
                except FormatError as error:
                    problems.append(error)
            offset = record.body_offset + len(record.body)

    def _usual(self, offset: int) -> Fde | None:
        """Return an FDE of ``.eh_frame`` as all compilers write it, in a third of the time of :meth:`_fde`.

        :return: ``None``: there is none, or something about it is unusual, or its CIE has not been read.
        """
        data = self._data
        if self._debug_frame or not isinstance(data, bytes) or not 0 <= offset <= len(data) - _HEAD_SIZE:
            return None
        length, distance = self._read_head(data, offset)
        common = self._commons.get(offset + 4 - distance) if distance else None
        if not isinstance(common, Common) or common.usual is None:
            return None
        at, end, usual = offset + _HEAD_SIZE, offset + 4 + length, common.usual
        code_at = at + usual.size
        if length > MAX_RECORD or not code_at <= end <= len(data):
            return None
        begin, size, skipped = usual.unpack_from(data, at)
        code_at += skipped
        if skipped >= 0x80 or code_at > end:
            return None
        start = (self.address + at if common.is_pcrel else common.base) + begin & ADDRESS_MASK
        fields = start, start + size, common, data[code_at:end], self.address + code_at
        return tuple.__new__(Fde, fields)  # half the time of calling the class

    def _record(self, offset: int, what: str) -> _Record:
        order, at, id_size = self._order, offset + 4, 4
        length = int.from_bytes(take(self._data, offset, 4, "CFI record"), order)
        if length == EXTENDED_LENGTH:
            length = int.from_bytes(take(self._data, at, 8, "CFI record"), order)
            at += 8
            # Linux Standard Base Core 5.0, 10.6.1: in .eh_frame, id and pointer keep their size of 4 bytes.
            id_size = 8 if self._debug_frame else 4
        if not id_size <= length <= MAX_RECORD:
            raise FormatError(f"expected {what} at {self._place(offset)}, found a record of {counted(length, 'byte')}")
        if length > len(self._data) - at:
            raise FormatError(
                f"the record at {self._place(offset)} has {counted(length, 'byte')},"
                f" the section {len(self._data) - at} left"
            )
        body = self._data[at : at + length]
        cie: int | None = int.from_bytes(body[:id_size], order)
        if not self._debug_frame:
            cie = at - cie if cie else None
        elif cie == (1 << 8 * id_size) - 1:
            cie = None
        return _Record(at, body, id_size, cie)

    def _fde(self, offset: int, record: _Record, common: Common) -> Fde:
        body_offset, body, at, _ = record
        address = self.address + body_offset
        start = address + at if common.is_pcrel else common.base
        try:
            if common.extent is None:
                begin, at = read_number(body, at, common.cie.encoding, self._order)
                size, at = read_number(body, at, common.cie.encoding, self._order)
            else:
                begin, size = common.extent.unpack_from(body, at)
                at += common.extent.size
            if common.cie.augmented:
                length, at = read_uleb128(body, at)
                at += length
        except (FormatError, struct.error) as error:
            raise FormatError(f"FDE at {self._place(offset)} is cut short: {error}") from None
        if at > len(body):
            raise FormatError(f"FDE at {self._place(offset)}: its augmentation data ends after it")
        start = start + begin & ADDRESS_MASK
        return Fde(start, start + size, common, body[at:], address + at)

    def _common(self, offset: int) -> Common:
        known = self._commons.get(offset)
        if known is None:
            try:
                known = self._read_common(offset)
            except FormatError as error:
                known = type(error)(f"CIE at {self._place(offset)}: {error}")
            self._commons[offset] = known
        if isinstance(known, FormatError):
            raise known
        return known

    def _read_common(self, offset: int) -> Common:
        if not 0 <= offset < len(self._data):
            raise FormatError("there is none")
        record = self._record(offset, "a CIE")
        if record.cie is not None:
            raise FormatError("found an FDE")
        self._cie_room -= len(record.body)
        if self._cie_room < 0:
            raise FormatError("the CIEs overlap")
        cie = cies.decode(record.body, record.id_size, self._order)
        return _common_of(cie, self._arch, self._bases)

    def _place(self, offset: int) -> str:
        """Return the name of a section offset in messages."""
        return f".debug_frame+{offset:#x}" if self._debug_frame else f"{self.address + offset:#x}"
