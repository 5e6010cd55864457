"""Archives of all formats: static libraries, packages, and archives that are compressed after they were damaged."""

from __future__ import annotations

import bz2
import functools
import gzip
import lzma
import zipfile
from collections import Counter
from io import BytesIO
from pathlib import Path

import zstandard

from lab.fuzz import file_fields
from lab.fuzz.fields import Field
from lab.fuzz.file_seeds import content_of, place_members
from lab.fuzz.scratch import memory_folder
from lab.fuzz.seeds import Seed
from sframe_unwind.elf import archive
from sframe_unwind.elf.constants import ARCHIVE_MAGIC, THIN_ARCHIVE_MAGIC
from sframe_unwind.survey.bounds import Bounds
from sframe_unwind.survey.finding import Finder, FoundFile, Passed, Skipped
from sframe_unwind.verify.inputs import examined, inputs
from tests.survey.programs import cpio, rpm, special, tar

_BOUNDS = Bounds(depth=4, growth=10, always=1 << 22, file=1 << 20, members=1000)
_PACKED = (bytes, bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress)
"""Compressions, one of which is applied to every second input after it was damaged."""
_TAR_FIELDS = ((0, 8), (100, 8), (124, 4), (124, 12), (132, 4), (148, 8), (156, 1), (157, 8), (257, 8))
_BLOCK = 512


@functools.cache
def seeds() -> tuple[Seed, ...]:
    """Return one archive of each format."""
    members = {"usr/bin/one": content_of("object of two sections amd64"), "usr/two.so": b"\x7fELF\x01", "text": b"x\n"}
    others = (special("link", b"2", "usr/bin/one"), special("hard", b"1", "usr/bin/one"), special("dir", b"5"))
    plain = tar(members, *others)
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, data in members.items():
            file.writestr(name, data, zipfile.ZIP_DEFLATED if name == "text" else zipfile.ZIP_STORED)
    return (
        Seed("static", content_of("archive of two amd64"), 0),
        Seed("thin", content_of("thin of two amd64"), 0),
        Seed("BSD", _bsd(), 0),
        Seed("deb", _deb(plain), 0),
        Seed("deb xz", _deb(lzma.compress(plain)), 0),
        Seed("tar", plain, 0),
        Seed("tar in tar", tar({"inner.tar": plain, "inner.gz": gzip.compress(plain)}), 0),
        Seed("tar.gz", gzip.compress(plain), 0),
        Seed("tar.xz", lzma.compress(plain), 0),
        Seed("tar.zst", zstandard.ZstdCompressor().compress(plain), 0),
        Seed("cpio", cpio(members), 0),
        Seed("rpm", rpm(members), 0),
        Seed("zip", stream.getvalue(), 0),
    )


def _ar(*members: tuple[bytes, bytes]) -> bytes:
    data = ARCHIVE_MAGIC
    for name, content in members:
        data += b"%-16b%-12d%-6d%-6d%-8o%-10d`\n" % (name, 0, 0, 0, 0o644, len(content))
        data += content + b"\n" * (len(content) % 2)
    return data


def _deb(data: bytes) -> bytes:
    return _ar((b"debian-binary", b"2.0\n"), (b"control.tar", tar({"control": b"Package: x\n"})), (b"data.tar", data))


def _bsd() -> bytes:
    name = b"a_long_name_of_bsd.o"
    return _ar((b"__.SYMDEF", bytes(16)), (b"#1/%d" % len(name), name + content_of("object of two sections amd64")))


def fields(seed: Seed) -> tuple[Field, ...]:
    """Return the headers of members, and all bytes at the start of compressed data."""
    found = [Field(at, 1, "little") for at in range(min(len(seed.data), 64))]
    if seed.data.startswith((ARCHIVE_MAGIC, THIN_ARCHIVE_MAGIC)):
        found += file_fields.fields(seed)
    if b"ustar" in seed.data[:_BLOCK]:
        heads = [at for at in range(0, len(seed.data), _BLOCK) if seed.data[at + 257 : at + 262] == b"ustar"]
        found += [Field(head + at, size, "big") for head in heads for at, size in _TAR_FIELDS]
    return tuple(found)


@functools.cache
def _folder() -> Path:
    folder = memory_folder()
    place_members(folder)
    return folder


def exercise(seed: Seed, seen: Counter[str]) -> str:
    """Look for ELF files in an archive like `survey`, and like `verify` if it is a static library."""
    number = seed.address // 5
    data = _PACKED[number // 2 % len(_PACKED)](seed.data) if number % 2 else seed.data
    path = _folder() / "archive"
    path.write_bytes(data)
    items = list(Finder(_BOUNDS).find(str(path)))
    assert isinstance(items[-1 if not isinstance(items[-1], Skipped) else -2], Passed), items
    seen["archives: members found"] += sum(isinstance(item, FoundFile) for item in items)
    if archive.is_archive(data):
        for item in inputs([str(path)], with_cfi=True):
            examined(item, lambda binary: binary.has_sframe)
            seen["archives: members listed"] += 1
    reasons = {item.reason for item in items if isinstance(item, Skipped)}
    return "damaged" if any("damaged" in reason or "malformed" in reason for reason in reasons) else "read"
