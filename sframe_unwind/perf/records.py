"""Iterates over the records of a recording, and decompresses those that are compressed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable

from sframe_unwind.address import WORD_SIZE, ByteOrder
from sframe_unwind.decompression import DecompressionError, decompressor
from sframe_unwind.errors import FormatError, counted
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.perf.constants import SECTION, RecordType
from sframe_unwind.perf.cursor import Cursor
from sframe_unwind.perf.header import FileSection
from sframe_unwind.perf.source import Source, Spill

_HEAD = 8
_WORDS_FIRST = 9
"""IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU and PERIOD of a sample."""
_MAX_DECOMPRESSED = 1 << 36
"""Maximum size in bytes.  A few compressed bytes can expand to gigabytes of zeros, which no recording has."""


class Record(NamedTuple):
    """One record, in a file or in decompressed data."""

    kind: int
    misc: int
    source: Source
    offset: int
    """Offset of the body in the source."""
    size: int
    """Size of the body, in bytes."""

    def body(self) -> bytes:
        """Return the bytes after the header of the record.

        :raises FormatError: the file became shorter.
        """
        return self._read(self.size)

    def head(self) -> bytes:
        """Return the first bytes of the body: for a sample, up to the fields that are larger than a word.

        :raises FormatError: the file became shorter.
        """
        return self._read(min(self.size, _WORDS_FIRST * WORD_SIZE))

    def _read(self, size: int) -> bytes:
        return self.source.read(self.offset, size, f"record of type {self.kind}")


def read_records(
    source: Source,
    place: FileSection,
    byteorder: ByteOrder,
    ends_within: Callable[[int], None] = lambda _: None,
) -> Iterator[Record]:
    """Yield the records in the order of the file.  Those of compressed data follow all others.

    Their times order them among the others.

    :param ends_within: called with the offset of the last record, if the file ends within it.
    :raises FormatError: a record is malformed.
    :raises DecompressionError: records are compressed, and nothing here decompresses them.
    """
    compressed: _CompressedRecords | None = None
    for record in _plain(source, place, byteorder, ends_within):
        if record.kind not in (RecordType.COMPRESSED, RecordType.COMPRESSED2):
            yield record
            continue
        compressed = compressed or _CompressedRecords()
        data = record.body()
        if record.kind == RecordType.COMPRESSED2:
            cursor = Cursor(data, byteorder, "PERF_RECORD_COMPRESSED2", record.offset)
            data = cursor.take(cursor.u64())
        compressed.add(data, record.offset)
    if compressed is not None:
        inner = compressed.source()
        yield from _plain(inner, FileSection(0, inner.size), byteorder, ends_within)


class _CompressedRecords:
    """Decompresses records into a temporary file.

    perf flushes its stream at the end of a record and continues with the same frame
    (``zstd_compress_stream_to_records`` of ``tools/perf/util/zstd.c``).

    :raises DecompressionError: nothing here decompresses them.
    """

    def __init__(self) -> None:
        self._stream = decompressor("zstd")
        self._spill = Spill()
        self._offset = 0

    def add(self, data: bytes, offset: int) -> None:
        """Decompress the data of the record at an offset.

        :raises FormatError: it is damaged, or all records have an implausibly large size.
        """
        self._offset = offset
        try:
            self._keep(self._stream.decompress(data))
        except DecompressionError as error:
            raise self._damaged(error) from error

    def source(self) -> Source:
        """Return the decompressed data of all records.

        :raises FormatError: see :meth:`add`.
        """
        try:
            for piece in self._stream.finish():
                self._keep(piece)
        except DecompressionError as error:
            raise self._damaged(error) from error
        return self._spill.source()

    def _keep(self, data: bytes) -> None:
        self._spill.add(data)
        if self._spill.size > _MAX_DECOMPRESSED:
            message = f"more than {_MAX_DECOMPRESSED} bytes of decompressed records"
            raise FormatError(message, self._offset, SECTION)

    def _damaged(self, error: DecompressionError) -> FormatError:
        return FormatError(f"compressed records: {error}", self._offset, SECTION)


def _plain(
    source: Source, place: FileSection, byteorder: ByteOrder, ends_within: Callable[[int], None]
) -> Iterator[Record]:
    offset, end = place.offset, place.offset + place.size
    while offset + _HEAD <= end:
        cursor = Cursor(source.read(offset, _HEAD, "a record"), byteorder, "a record", offset)
        kind, misc, size = cursor.u32(), cursor.u16(), cursor.u16()
        if size < _HEAD:
            raise FormatError(f"a record of {counted(size, 'byte')}, expected at least {_HEAD}", offset, SECTION)
        if offset + size > end:  # perf was killed while it wrote this record, or a copy was cut
            ends_within(offset)
            return
        yield Record(kind, misc, source, offset + _HEAD, size - _HEAD)
        offset += size + _data_after(source, kind, offset + _HEAD, size - _HEAD, byteorder)


def _data_after(source: Source, kind: int, offset: int, size: int, byteorder: ByteOrder) -> int:
    """Return the size of the data after a record that its own size does not include."""
    if kind == RecordType.AUXTRACE and size >= 8:
        return Cursor(source.read(offset, 8, "PERF_RECORD_AUXTRACE"), byteorder, "").u64()
    if kind == RecordType.HEADER_TRACING_DATA and size >= 4:
        return (Cursor(source.read(offset, 4, "PERF_RECORD_HEADER_TRACING_DATA"), byteorder, "").u32() + 7) & ~7
    return 0
