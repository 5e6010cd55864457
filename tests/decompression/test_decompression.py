"""One decompressor for sections, records and files, with each implementation of Zstandard."""

from __future__ import annotations

import gzip
import lzma
import random
import re
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import pytest
import zstandard

from sframe_unwind import elf
from sframe_unwind.arch import amd64
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.debugger.debug_frame import why_undecompressed
from sframe_unwind.decompression import DecompressionError, SectionStart, decompressor, section_contents, whole, zstd
from tests.hanging import HANG
from tests.missing import zstd_needed

TEXT = bytes(random.Random(7).choices(b"abcdefgh", k=300_000))
ZSTD = zstandard.ZstdCompressor().compress(TEXT)
STANDARD, PACKAGE, LIBRARY, PROGRAM = "compression.zstd", "zstandard", "library", "program"
HAS_STANDARD = sys.version_info >= (3, 14)


@pytest.fixture(params=[PACKAGE, LIBRARY, PROGRAM] + [STANDARD] * HAS_STANDARD, autouse=True)
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Leave only one implementation of Zstandard, and return its name."""
    if request.param == PROGRAM:
        zstd_needed()
    remove({STANDARD, PACKAGE, LIBRARY, PROGRAM} - {request.param}, monkeypatch)
    return str(request.param)


def remove(implementations: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in implementations & {STANDARD, PACKAGE}:
        monkeypatch.setitem(sys.modules, module, None)
    for name in implementations & {LIBRARY, PROGRAM}:
        monkeypatch.setattr(zstd, {LIBRARY: "_LIBRARY", PROGRAM: "_PROGRAM"}[name], "no-such-file")


@pytest.mark.parametrize(("kind", "data"), [("zlib", zlib.compress(TEXT)), ("zstd", ZSTD)], ids=["zlib", "zstd"])
def test_sections(kind: str, data: bytes) -> None:
    assert section_contents(kind, data, len(TEXT)) == TEXT
    assert section_contents(kind, data + bytes(16), len(TEXT)) == TEXT  # padding
    assert section_contents(kind, data, 1000) == TEXT[:1000]
    with pytest.raises(DecompressionError, match="expected 300001 bytes, found 300000 when decompressed"):
        section_contents(kind, data, len(TEXT) + 1)
    with pytest.raises(DecompressionError):
        section_contents(kind, b"damaged" + data, len(TEXT))


@pytest.mark.parametrize(("kind", "data"), [("zlib", zlib.compress(TEXT)), ("zstd", ZSTD)], ids=["zlib", "zstd"])
def test_the_start_of_a_section(kind: str, data: bytes, implementation: str) -> None:
    """What is before the damaged part can be read."""
    whole_section = SectionStart(kind, data, len(TEXT))
    for offset, size in ((100_000, 10), (0, 20), (len(TEXT) - 5, 100), (len(TEXT), 1), (5, len(TEXT))):
        assert whole_section.read(offset, size) == TEXT[offset : offset + size]
    damaged = SectionStart(kind, data[: len(data) // 2] + bytes(100) + data[len(data) // 2 :], len(TEXT))
    if kind == "zlib" or implementation != PROGRAM:  # the program gets all data at once
        assert damaged.read(0, 1000) == TEXT[:1000]
    for _ in range(2):
        with pytest.raises(DecompressionError):
            damaged.read(len(TEXT) - 1, 1)
    short = SectionStart(kind, data, len(TEXT) + 1)
    assert short.read(len(TEXT) - 5, 5) == TEXT[-5:]
    for _ in range(2):
        with pytest.raises(DecompressionError, match="expected 300001 bytes, found 300000 when decompressed"):
            short.read(len(TEXT), 1)


def test_a_section_of_several_frames() -> None:
    half = len(TEXT) // 2
    frames = b"".join(zstandard.ZstdCompressor().compress(part) for part in (TEXT[:half], TEXT[half:]))
    assert section_contents("zstd", frames, len(TEXT)) == TEXT


def test_stream_that_is_cut_anywhere(implementation: str) -> None:
    """perf flushes its stream without an end of the frame."""
    compressor = zstandard.ZstdCompressor().compressobj()
    pieces = []
    for at in range(0, len(TEXT), 50_000):
        piece = compressor.compress(TEXT[at : at + 50_000])
        pieces.append(piece + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
    stream, found = decompressor("zstd"), b""
    for number, piece in enumerate(pieces):
        found += stream.decompress(piece[:100]) + stream.decompress(piece[100:])
        # The program gets the data at the end.
        assert len(found) == (0 if implementation == PROGRAM else 50_000 * (number + 1))
    assert found + b"".join(stream.finish()) == TEXT
    assert stream.is_within_frame


def test_a_few_bytes_that_expand_to_gigabytes_take_little_memory() -> None:
    """They are decompressed no further than the header says."""
    compressor = zstandard.ZstdCompressor().compressobj()
    bomb = b"".join(compressor.compress(bytes(1 << 24)) for _ in range(64)) + compressor.flush()
    assert len(bomb) < 1 << 17
    tracemalloc.start()
    try:
        assert section_contents("zstd", bomb, 1000) == bytes(1000)
        assert tracemalloc.get_traced_memory()[1] < 1 << 27
    finally:
        tracemalloc.stop()


def test_nothing_decompresses_zstd(monkeypatch: pytest.MonkeyPatch) -> None:
    remove({STANDARD, PACKAGE, LIBRARY, PROGRAM}, monkeypatch)
    wanted = r"Zstandard needs Python 3.14, the package zstandard \(pip install zstandard\), .* or the program"
    with pytest.raises(DecompressionError, match=wanted):
        section_contents("zstd", ZSTD, len(TEXT))


WHOLE = {"zstd": ZSTD, "xz": lzma.compress(TEXT, preset=0), "gzip": gzip.compress(TEXT)}


@pytest.mark.parametrize("kind", WHOLE)
def test_whole_data(kind: str) -> None:
    data = WHOLE[kind]
    assert whole(kind, data, len(TEXT)) == TEXT
    with pytest.raises(DecompressionError, match="it has more than 299,999 bytes"):
        whole(kind, data, len(TEXT) - 1)
    with pytest.raises(DecompressionError, match="it ends too early"):
        whole(kind, data[:-100], len(TEXT))
    with pytest.raises(DecompressionError):
        whole(kind, b"damaged" + data, len(TEXT))


COMPRESSED = [("zlib", "zlib"), ("zlib-gnu", "zlib"), ("zstd", "Zstandard")]


@pytest.mark.parametrize(("how", "method"), COMPRESSED, ids=[how for how, _ in COMPRESSED])
def test_sections_of_files(how: str, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands and plugins get the same contents as from the plain file, and the same error where there are none."""
    source, plain, packed = tmp_path / "a.c", tmp_path / "plain", tmp_path / "packed"
    functions = (f"int f{number}(int one) {{ return one + {number}; }}" for number in range(200))
    source.write_text("\n".join((*functions, "int main(void) { return f1(2); }\n")), encoding="ascii")
    flags = ["-g", "-O1", "-fno-asynchronous-unwind-tables"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(plain)], check=True, timeout=HANG)
    subprocess.run(["objcopy", f"--compress-debug-sections={how}", str(plain), str(packed)], check=True, timeout=HANG)
    assert packed.stat().st_size < plain.stat().st_size
    found, extents = contents(plain), cfi(plain)
    assert len(found) > 1000
    assert len(extents) > 200
    assert (contents(packed), cfi(packed)) == (found, extents)
    assert why_undecompressed([DebugFile(str(packed), "")], amd64.ARCH) == ""
    remove({STANDARD, PACKAGE, LIBRARY, PROGRAM}, monkeypatch)
    if method == "zlib":
        assert contents(packed) == found
        return
    error = f"{packed}: .debug_frame cannot be decompressed: Zstandard needs Python 3.14, the package zstandard"
    with pytest.raises(DecompressionError, match=re.escape(error)):
        contents(packed)
    assert why_undecompressed([DebugFile(str(packed), "")], amd64.ARCH).startswith(error)


def contents(path: Path) -> bytes:
    """Return `.debug_frame`, which objcopy before 2.42 renames if it compresses it by the old format."""
    with elf.opened(path) as binary:
        section = binary.named(".debug_frame") or binary.named(".zdebug_frame")
        assert section is not None
        return binary.contents(section)


def cfi(path: Path) -> list[tuple[int, int]]:
    with elf.opened(path) as binary:
        return binary.cfi.ranges()
