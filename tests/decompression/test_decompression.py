"""One decompressor for sections, records and files, with each implementation of Zstandard."""

from __future__ import annotations

import random
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import pytest
import zstandard

from sframe_unwind import elf
from sframe_unwind.arch import amd64
from sframe_unwind.decompression import streams as decompression
from sframe_unwind.decompression.streams import (
    SECTION_ZLIB,
    SECTION_ZSTD,
    DecompressionError,
    Decompressor,
    section_contents,
    zstd,
)
from sframe_unwind.errors import MissingExtraError
from sframe_unwind.image.elf_sections import ElfSections
from tests.hanging import HANG

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


@pytest.mark.parametrize("kind", ["zlib", "zstd"])
def test_both_readers_of_elf_files_decompress_sections(kind: str, tmp_path: Path) -> None:
    """That of files, with pyelftools, and that of the plugins, without it."""
    source, plain, packed = tmp_path / "a.c", tmp_path / "plain", tmp_path / "packed"
    functions = (f"int f{number}(int one) {{ return one + {number}; }}" for number in range(200))
    source.write_text("\n".join((*functions, "int main(void) { return f1(2); }\n")), encoding="ascii")
    flags = ["-g", "-O1", "-fno-asynchronous-unwind-tables"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(plain)], check=True, timeout=HANG)
    subprocess.run(["objcopy", f"--compress-debug-sections={kind}", str(plain), str(packed)], check=True, timeout=HANG)
    found = {path: (by_files(path), by_plugins(path)) for path in (plain, packed)}
    assert len(set(found[plain])) == 1
    assert len(found[plain][0]) > 1000
    assert found[packed] == found[plain]
    assert packed.stat().st_size < plain.stat().st_size


def by_files(path: Path) -> bytes:
    with elf.opened(path) as binary:
        section = binary.named(".debug_frame")
        assert section is not None
        return binary.contents(section)


def by_plugins(path: Path) -> bytes:
    with path.open("rb") as stream:
        sections = ElfSections(stream, amd64.ARCH)
        number = sections.find(".debug_frame")
        assert number is not None
        return sections.contents(number)
