"""Decodes the header of perf.data, of a file or of a pipe, and the sections that it lists."""

from __future__ import annotations

from sframe_unwind.address import ByteOrder
from sframe_unwind.errors import FormatError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.perf.attributes import SMALLEST, Attributes, read_attributes
from sframe_unwind.perf.constants import SECTION
from sframe_unwind.perf.cursor import Cursor
from sframe_unwind.perf.source import Source

_MAGICS: dict[bytes, ByteOrder] = {b"PERFILE2": "little", b"2ELIFREP": "big"}
_PIPE_SIZE = 16
_SIZE = 104
_SECTION_SIZE = 16
_FEATURE_BITS = 256


class FileSection(NamedTuple):
    """A ``struct perf_file_section``."""

    offset: int
    size: int


class Header(NamedTuple):
    """The header of a recording."""

    byteorder: ByteOrder
    """``"little"`` or ``"big"``."""
    attributes: tuple[Attributes, ...]
    records: FileSection
    features: tuple[tuple[int, FileSection], ...]
    """Number (see :class:`sframe_unwind.perf.constants.Feature`) and section of each feature."""
    missing: int = 0
    """Number of bytes of records that are missing, because the file is truncated; then it has no features either."""


def read_header(source: Source) -> Header:
    """Read the header.

    :raises FormatError: the file is not a recording, or the header is malformed.
    """
    if source.size == 0:
        raise FormatError("the file is empty")
    head = source.read(0, _PIPE_SIZE, "the header") if source.size >= _PIPE_SIZE else b""
    byteorder = _MAGICS.get(head[:8])
    if byteorder is None:
        raise FormatError(f"not a recording of perf: the file begins with {head[:8].hex() or 'too few bytes'}")
    size = Cursor(head[8:], byteorder, "the header").u64()
    if size == _PIPE_SIZE:  # written to a pipe: attributes and features are records
        return Header(byteorder, (), FileSection(_PIPE_SIZE, source.size - _PIPE_SIZE), ())
    if size != _SIZE:
        raise FormatError(f"size of the header is {size}, expected {_PIPE_SIZE} or {_SIZE}", 8, SECTION)
    cursor = Cursor(source.read(0, _SIZE, "the header"), byteorder, "the header")
    cursor.skip(2)
    entry_size, attributes, records, _ = cursor.u64(), _section(cursor), _section(cursor), _section(cursor)
    flags = cursor.words(_FEATURE_BITS // 64)
    if not records.size:  # perf was killed before it could write the size
        records, flags = FileSection(records.offset, max(source.size - records.offset, 0)), ()
    events = tuple(_events(source, attributes, entry_size, byteorder))
    missing = min(max(records.offset + records.size - source.size, 0), records.size)
    if missing:
        return Header(
            byteorder=byteorder,
            attributes=events,
            records=FileSection(records.offset, records.size - missing),
            features=(),
            missing=missing,
        )
    return Header(byteorder, events, records, tuple(_features(source, records, flags, byteorder)))


def _section(cursor: Cursor) -> FileSection:
    return FileSection(cursor.u64(), cursor.u64())


def _events(source: Source, attributes: FileSection, entry_size: int, byteorder: ByteOrder) -> list[Attributes]:
    if entry_size < SMALLEST + _SECTION_SIZE:
        what = f"size of an attribute entry is {entry_size}, expected at least {SMALLEST + _SECTION_SIZE}"
        raise FormatError(what, 16, SECTION)
    found = []
    for offset in range(attributes.offset, attributes.offset + attributes.size - entry_size + 1, entry_size):
        data = source.read(offset, entry_size, "an attribute entry")
        # In files of the oldest perf, the size in the attributes is 0.
        event = read_attributes(Cursor(data[:-_SECTION_SIZE], byteorder, "an attribute entry", offset), byteorder)
        place = _section(Cursor(data[-_SECTION_SIZE:], byteorder, "an attribute entry", offset))
        raw = Cursor(source.read(place.offset, place.size, "the ids of an event"), byteorder, "ids", place.offset)
        found.append(event._replace(ids=raw.words(place.size // 8)))
    return found


def _features(
    source: Source, records: FileSection, flags: tuple[int, ...], byteorder: ByteOrder
) -> list[tuple[int, FileSection]]:
    """Return the features.  Their sections are listed after the records, in the order of their numbers."""
    numbers = [64 * at + bit for at, word in enumerate(flags) for bit in range(64) if word >> bit & 1]
    start = records.offset + records.size
    table = Cursor(source.read(start, _SECTION_SIZE * len(numbers), "features"), byteorder, "features", start)
    return [(number, _section(table)) for number in numbers]
