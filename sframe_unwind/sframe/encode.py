"""Encodes the description of a section to bytes, for every version, ABI and byte order.

A description is a :class:`SectionSpec`.  It is written by hand, made from rules
(:mod:`sframe_unwind.sframe.encode_rule`), or made from a decoded section by :func:`describe`.  Encoding what
:func:`describe` returns gives the original bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from sframe_unwind.address import ByteOrder
from sframe_unwind.errors import EncodeError, counted
from sframe_unwind.memory import STRUCT_MARKS
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe import fre, header, raw
from sframe_unwind.sframe.constants import (
    ARCH_BY_ABI,
    EXPECTED_VERSIONS,
    FEATURES,
    KNOWN_FLAGS,
    PLT_ENTRY_SIZE_V1,
    VERSIONS,
    AbiNumber,
    FdeType,
    Flag,
    PauthKey,
    PcType,
)
from sframe_unwind.sframe.section import ALIGNMENT, Section
from sframe_unwind.sframe.table import Function, Table


class RowSpec(NamedTuple):
    """One FRE."""

    start: int
    """Start, in bytes from the start of the function; in a mask FDE, from the start of the block."""
    info: int
    """The FRE info byte, as stored."""
    words: tuple[int, ...] = ()
    """The data words, signed.  Their number must match the info byte."""


class FunctionSpec(NamedTuple):
    """One FDE and its rows."""

    start: int
    """Address of the first byte of the function."""
    size: int
    """Length of the function in bytes."""
    rows: tuple[RowSpec, ...] = ()
    address_size: int | None = None
    """Size of the start address of a row in bytes; ``None``: the smallest that holds all of them."""
    pc_type: PcType = PcType.INC
    repetition_size: int = 0
    fde_type: FdeType = FdeType.DEFAULT
    pauth_key: PauthKey = PauthKey.A
    signal: bool = False
    rows_at: int | None = None
    """Offset of the rows (in version 3, of the attribute record) in the FRE sub-section, in bytes; ``None``: after the
    rows of the other functions."""


class TableSpec(NamedTuple):
    """One header with its functions.  The encoder keeps their order, even if the flags claim that they are sorted."""

    version: int
    abi: AbiNumber
    flags: Flag = Flag(0)
    fixed_fp_offset: int = 0
    fixed_ra_offset: int = 0
    aux_header: bytes = b""
    functions: tuple[FunctionSpec, ...] = ()
    offset: int | None = None
    """Section offset of the header, in bytes; ``None``: the next aligned offset."""
    fde_offset: int = 0
    """Offset of the FDE sub-section in bytes, from the end of the header with its auxiliary header (as on disk)."""
    fre_offset: int | None = None
    """Offset of the FRE sub-section, counted like :attr:`fde_offset`; ``None``: after the FDEs."""
    fre_size: int | None = None
    """Length of the FRE sub-section in bytes; ``None``: the length of the rows."""

    @property
    def byteorder(self) -> ByteOrder:
        """``"little"`` or ``"big"``, as the ABI defines it."""
        return ARCH_BY_ABI[self.abi].byteorder


class SectionSpec(NamedTuple):
    """A whole section.  It has several tables if a linker that does not know SFrame concatenated input sections."""

    address: int
    """Address at which the section is loaded."""
    tables: tuple[TableSpec, ...] = ()
    size: int | None = None
    """Length in bytes; ``None``: the length of the tables."""


def usual_table(version: int, abi: AbiNumber, functions: Iterable[FunctionSpec] = ()) -> TableSpec:
    """Return the description of a table as GNU ld writes it: sorted, and with the ABI's fixed offsets."""
    pcrel = Flag(0) if FEATURES[version].pcrel_optional else Flag.FDE_FUNC_START_PCREL
    ra = -8 if abi is AbiNumber.AMD64_ENDIAN_LITTLE else 0
    by_start = sorted(functions, key=lambda function: function.start)
    return TableSpec(version, abi, Flag.FDE_SORTED | pcrel, fixed_ra_offset=ra, functions=tuple(by_start))


def without_layout(table: TableSpec) -> TableSpec:
    """Return the description without offsets and sizes, so that the encoder computes them; use it after a change."""
    return table._replace(
        functions=tuple(function._replace(rows_at=None) for function in table.functions),
        offset=None,
        fde_offset=0,
        fre_offset=None,
        fre_size=None,
    )


def describe(section: Section) -> SectionSpec:
    """Return the description of a decoded section.  :func:`encode` makes the original bytes from it.

    The description omits reserved bits and padding, in which producers write zeros.  For an object file, start
    addresses are those after relocation, and encoding gives the relocated bytes.

    :raises FormatError: an entry or row is malformed, or the bytes after the last table are not a table.
    """
    if section.rest is not None:
        raise section.rest
    return SectionSpec(section.address, tuple(map(_describe_table, section.tables)), section.size)


def _describe_table(table: Table) -> TableSpec:
    head = table.header
    return TableSpec(
        version=head.version,
        abi=head.abi,
        flags=head.flags,
        fixed_fp_offset=head.fixed_fp_offset,
        fixed_ra_offset=head.fixed_ra_offset,
        aux_header=table.aux_header,
        functions=tuple(_describe_function(table, function) for function in table.functions()),
        offset=table.offset,
        fde_offset=head.fde_offset,
        fre_offset=head.fre_offset,
        fre_size=head.fre_size,
    )


def _describe_function(table: Table, function: Function) -> FunctionSpec:
    entry = function.fde
    order = table.header.byteorder
    return FunctionSpec(
        start=function.start,
        size=entry.size,
        rows=tuple(RowSpec(start, row[0], fre.words(row, order)) for start, row in table.raw_rows(function)),
        address_size=entry.address_size,
        pc_type=entry.pc_type,
        repetition_size=entry.repetition_size,
        fde_type=entry.fde_type,
        pauth_key=entry.pauth_key,
        signal=entry.signal,
        rows_at=entry.rows_offset - record_size(table.header.version),
    )


def encode(section: SectionSpec) -> bytes:
    """Return the bytes of a section.

    :raises EncodeError: a value does not fit its field, or the version lacks the field.
    """
    area = bytearray()
    for number, table in enumerate(section.tables):
        where = f"table {number}"
        offset = len(area) + -len(area) % ALIGNMENT if table.offset is None else table.offset
        if offset < len(area):
            raise EncodeError(f"{where}: offset {offset:#x} is within its predecessor, expected {len(area):#x} or more")
        area += bytes(offset - len(area))
        area += encode_table(table, section.address + offset, where)
    if section.size is None:
        return bytes(area)
    if section.size < len(area):
        raise EncodeError(f"section: size {section.size:#x} is too small, expected {len(area):#x} or more")
    return bytes(area) + bytes(section.size - len(area))


def encode_table(table: TableSpec, address: int, where: str = "table") -> bytes:
    """Return the bytes of one header and its sub-sections.

    :param address: address of the header.
    :param where: name of the table in error messages.
    :raises EncodeError: a value does not fit its field, or the version lacks the field.
    """
    _check_version(table, where)
    names = [f"{where}: function {number} at {f.start:#x}" for number, f in enumerate(table.functions)]
    blobs = [function_rows(table, function, name) for function, name in zip(table.functions, names)]
    rows_at, rows = _lay_out([function.rows_at for function in table.functions], blobs, names)
    fre_size = len(rows) if table.fre_size is None else table.fre_size
    if fre_size < len(rows):
        raise EncodeError(f"{where}: FRE sub-section of {fre_size:#x} bytes, but the rows take {len(rows):#x}")
    fdes_size = len(table.functions) * header.FDE_SIZES[table.version]
    fre_offset = table.fde_offset + fdes_size if table.fre_offset is None else table.fre_offset
    _check_disjoint(table.fde_offset, fdes_size, fre_offset, fre_size, where)
    body = header.SIZES[table.version] + len(table.aux_header)
    entries = address + body + table.fde_offset
    head = _header(table, fre_size, fre_offset, where)
    area = bytearray(max(body, body + table.fde_offset + fdes_size, body + fre_offset + fre_size))
    area[:body] = head + table.aux_header
    pcrel = header.starts_are_pcrel(table.version, table.flags)
    for number, (function, name) in enumerate(zip(table.functions, names)):
        at = number * header.FDE_SIZES[table.version]
        origin = entries + at if pcrel else address
        entry = _entry(table, function, function.start - origin, rows_at[number], name)
        area[body + table.fde_offset + at : body + table.fde_offset + at + len(entry)] = entry
    area[body + fre_offset : body + fre_offset + len(rows)] = rows
    return bytes(area)


def fits(value: int, size: int, signed: bool) -> bool:
    """Return whether a field of ``size`` bytes can hold the value."""
    bits = 8 * size - signed
    return (-(1 << bits) if signed else 0) <= value < 1 << bits


def _check_version(table: TableSpec, where: str) -> None:
    if table.version not in VERSIONS:
        raise EncodeError(f"{where}: unknown version {table.version}, expected {EXPECTED_VERSIONS}")
    unknown = table.flags & ~KNOWN_FLAGS[table.version]
    if unknown:
        raise EncodeError(f"{where}: flags {int(table.flags):#x}: version {table.version} has no {int(unknown):#x}")


def _header(table: TableSpec, fre_size: int, fre_offset: int, where: str) -> bytes:
    num_fres = sum(len(function.rows) for function in table.functions)
    for what, value, size, signed in (
        ("fixed FP offset", table.fixed_fp_offset, 1, True),
        ("fixed RA offset", table.fixed_ra_offset, 1, True),
        ("length of the auxiliary header", len(table.aux_header), 1, False),
        ("number of FDEs", len(table.functions), 4, False),
        ("number of FREs", num_fres, 4, False),
        ("length of the FRE sub-section", fre_size, 4, False),
        ("offset of the FDE sub-section", table.fde_offset, 4, False),
        ("offset of the FRE sub-section", fre_offset, 4, False),
    ):
        _check(value, size, signed, f"{where}: {what}")
    return header.encode(
        header.Header(
            byteorder=table.byteorder,
            version=table.version,
            flags=table.flags,
            abi=table.abi,
            fixed_fp_offset=table.fixed_fp_offset,
            fixed_ra_offset=table.fixed_ra_offset,
            aux_size=len(table.aux_header),
            num_fdes=len(table.functions),
            num_fres=num_fres,
            fre_size=fre_size,
            fde_offset=table.fde_offset,
            fre_offset=fre_offset,
        )
    )


def _check_disjoint(fde_offset: int, fdes_size: int, fre_offset: int, fre_size: int, where: str) -> None:
    if fdes_size and fre_size and fde_offset < fre_offset + fre_size and fre_offset < fde_offset + fdes_size:
        raise EncodeError(
            f"{where}: FRE sub-section at {fre_offset:#x} overlaps the FDE sub-section,"
            f" which runs from {fde_offset:#x} to {fde_offset + fdes_size:#x}"
        )


def _entry(table: TableSpec, function: FunctionSpec, start: int, rows_at: int, where: str) -> bytes:
    features, layout = FEATURES[table.version], header.FDE_LAYOUTS[table.version]
    _check(start, struct.calcsize("=" + layout[0]), True, f"{where}: start, relative")
    _check(function.size, 4, False, f"{where}: size")
    _check(rows_at, 4, False, f"{where}: offset of the rows")
    attributes = [] if features.attributes else [len(function.rows), _info(function, where)]
    if attributes and features.repetition_size:
        attributes.append(function.repetition_size)
    return struct.pack(_mark(table) + layout, start, function.size, rows_at, *attributes)


def function_rows(table: TableSpec, function: FunctionSpec, where: str) -> bytes:
    """Return the bytes of a function in the FRE sub-section: in version 3 the attribute record, then the rows.

    :param where: name of the function in error messages.
    :raises EncodeError: a value does not fit its field, or the version lacks the field.
    """
    _check_attributes(table, function, where)
    size = _address_size(function, where)
    mark = _mark(table)
    layout = mark + "BHI"[raw.ADDRESS_SIZES.index(size)]
    area = bytearray()
    if FEATURES[table.version].attributes:
        _check(len(function.rows), 2, False, f"{where}: number of rows")
        info = _info(function, where)
        attributes = len(function.rows), info, function.fde_type, function.repetition_size
        area += struct.pack(mark + raw.ATTRIBUTES, *attributes)
    previous = 0
    for number, row in enumerate(function.rows):
        name = f"{where}: row {number}"
        _check(row.start, size, False, f"{name}: start")
        if row.start < previous:
            raise EncodeError(f"{name}: starts at {row.start:#x}, before its predecessor at {previous:#x}")
        previous = row.start
        area += struct.pack(layout, row.start)
        area += _row(row, mark, name)
    return bytes(area)


def _row(row: RowSpec, mark: str, where: str) -> bytes:
    """Return the bytes of a row, starting with the info byte."""
    _check(row.info, 1, False, f"{where}: info byte")
    if raw.WORDS_SIZE[row.info] == raw.INVALID_SIZE:
        raise EncodeError(f"{where}: info byte {row.info:#x} has the invalid word size 3, expected 0 to 2")
    count = row.info >> 1 & 0xF
    if len(row.words) != count:
        raise EncodeError(f"{where}: {counted(len(row.words), 'data word')}, but info byte {row.info:#x} says {count}")
    size = fre.word_size(row.info)
    for number, word in enumerate(row.words, 1):
        _check(word, size, True, f"{where}: word {number}")
    return struct.pack(f"{mark}B{count}{'bhi'[raw.WORD_SIZES.index(size)]}", row.info, *row.words)


def _check_attributes(table: TableSpec, function: FunctionSpec, where: str) -> None:
    version, repetition, features = table.version, function.repetition_size, FEATURES[table.version]
    _check(repetition, 1, False, f"{where}: repetition size")
    if not features.repetition_size:
        expected = PLT_ENTRY_SIZE_V1 if function.pc_type is PcType.MASK else 0
        if repetition != expected:
            why = f"version {version} stores none"
            raise EncodeError(f"{where}: repetition size {repetition}, expected {expected}: {why}")
    elif function.pc_type is PcType.MASK and not repetition:
        raise EncodeError(f"{where}: repetition size 0 in a mask FDE, expected 1 to 255")
    if not features.flexible and function.fde_type is not FdeType.DEFAULT:
        raise EncodeError(f"{where}: a flexible FDE, which version {version} does not have, expected version 3")
    if not features.signal and function.signal:
        raise EncodeError(f"{where}: a signal frame, which version {version} cannot mark, expected version 3")


def _address_size(function: FunctionSpec, where: str) -> int:
    if function.address_size is None:
        last = max((row.start for row in function.rows), default=0)
        return next((size for size in raw.ADDRESS_SIZES if fits(last, size, False)), raw.ADDRESS_SIZES[-1])
    if function.address_size not in raw.ADDRESS_SIZES:
        raise EncodeError(f"{where}: row start addresses of {function.address_size} bytes, expected 1, 2 or 4")
    return function.address_size


def _info(function: FunctionSpec, where: str) -> int:
    fre_type = raw.ADDRESS_SIZES.index(_address_size(function, where))
    return fre_type | function.pc_type << 4 | function.pauth_key << 5 | function.signal << 7


def _lay_out(wanted: list[int | None], blobs: list[bytes], names: list[str]) -> tuple[list[int], bytes]:
    """Lay out the FRE sub-section; return the offset of each blob, and the bytes of the sub-section.

    Functions may share rows: blobs may overlap if the bytes are equal there.
    """
    area = bytearray()
    places = [0] * len(blobs)
    given = sorted((at, number) for number, at in enumerate(wanted) if at is not None)
    for at, number in given:
        _check(at, 4, False, f"{names[number]}: offset of the rows")
        blob, places[number] = blobs[number], at
        if not blob:
            continue
        area += bytes(max(at - len(area), 0))
        shared = len(area) - at
        if area[at : at + len(blob)] != blob[:shared]:
            raise EncodeError(f"{names[number]}: rows at {at:#x} overlap others, expected {len(area):#x} or more")
        area += blob[shared:]
    for number in (number for number, at in enumerate(wanted) if at is None):
        places[number] = len(area)
        area += blobs[number]
    return places, bytes(area)


def record_size(version: int) -> int:
    """Return the number of bytes before the first row of a function in the FRE sub-section."""
    return raw.ATTRIBUTE_SIZE if FEATURES[version].attributes else 0


def _mark(table: TableSpec) -> str:
    return STRUCT_MARKS[table.byteorder]


def _check(value: int, size: int, signed: bool, what: str) -> None:
    if not fits(value, size, signed):
        low = -(1 << 8 * size - 1) if signed else 0
        high = (1 << 8 * size - signed) - 1
        raise EncodeError(f"{what}: {value} does not fit in {counted(size, 'byte')}, expected {low} to {high}")
