"""One decompressor for sections, records and files, with each implementation of Zstandard."""

from __future__ import annotations

import random
import sys
import tracemalloc
import zlib

import pytest
import zstandard

from sframe_unwind.errors import MissingExtraError
from sframe_unwind.image import decompression
from sframe_unwind.image.decompression import (
    SECTION_ZLIB,
    SECTION_ZSTD,
    DecompressionError,
    Decompressor,
    section_contents,
    zstd,
)

TEXT = bytes(random.Random(7).choices(b"abcdefgh", k=300_000))
ZSTD = zstandard.ZstdCompressor().compress(TEXT)
STANDARD, PACKAGE = "compression.zstd", "zstandard"
HAS_STANDARD = sys.version_info >= (3, 14)


@pytest.fixture(params=[PACKAGE, "system"] + [STANDARD] * HAS_STANDARD, autouse=True)
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave only one implementation of Zstandard."""
    for other in {STANDARD, PACKAGE} - {request.param}:
        monkeypatch.setitem(sys.modules, other, None)


@pytest.mark.parametrize(("kind", "data"), [(SECTION_ZLIB, zlib.compress(TEXT)), (SECTION_ZSTD, ZSTD)])
def test_sections(kind: int, data: bytes) -> None:
    assert section_contents(kind, data, len(TEXT)) == TEXT
    assert section_contents(kind, data + bytes(16), len(TEXT)) == TEXT  # padding
    assert section_contents(kind, data, 1000) == TEXT[:1000]
    with pytest.raises(DecompressionError, match="expected 300001 bytes, found 300000 when decompressed"):
        section_contents(kind, data, len(TEXT) + 1)
    with pytest.raises(DecompressionError):
        section_contents(kind, b"damaged" + data, len(TEXT))


def test_unknown_compression() -> None:
    with pytest.raises(DecompressionError, match="compression 3 is not known"):
        section_contents(3, ZSTD, 10)


def test_a_section_of_several_frames() -> None:
    half = len(TEXT) // 2
    frames = b"".join(zstandard.ZstdCompressor().compress(part) for part in (TEXT[:half], TEXT[half:]))
    assert section_contents(SECTION_ZSTD, frames, len(TEXT)) == TEXT


def test_stream_that_is_cut_anywhere() -> None:
    """perf flushes its stream without an end of the frame."""
    compressor = zstandard.ZstdCompressor().compressobj()
    pieces = []
    for at in range(0, len(TEXT), 50_000):
        piece = compressor.compress(TEXT[at : at + 50_000])
        pieces.append(piece + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
    stream, found = Decompressor(zstd), b""
    for number, piece in enumerate(pieces):
        found += stream.decompress(piece[:100]) + stream.decompress(piece[100:])
        assert len(found) == 50_000 * (number + 1)
    assert found == TEXT


def test_a_few_bytes_that_expand_to_gigabytes_take_little_memory() -> None:
    """They are decompressed no further than the header says."""
    compressor = zstandard.ZstdCompressor().compressobj()
    bomb = b"".join(compressor.compress(bytes(1 << 24)) for _ in range(64)) + compressor.flush()
    assert len(bomb) < 1 << 17
    tracemalloc.start()
    try:
        assert section_contents(SECTION_ZSTD, bomb, 1000) == bytes(1000)
        assert tracemalloc.get_traced_memory()[1] < 1 << 27
    finally:
        tracemalloc.stop()


def test_nothing_decompresses_zstd(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (STANDARD, PACKAGE):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(decompression, "_ZSTD_LIBRARY", "libno-such-library.so.1")
    with pytest.raises(MissingExtraError, match="this needs the package zstandard: pip install zstandard"):
        section_contents(SECTION_ZSTD, ZSTD, len(TEXT))
