"""Small ELF files to survey, and archives of them."""

from __future__ import annotations

import gzip
import shutil
import struct
import tarfile
from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO
from pathlib import Path

from tests.missing import absent, package_needed
from tests.samples.build import build

package_needed("libarchive")
for tool in ("dpkg-deb", "readelf"):
    if shutil.which(tool) is None:
        absent(f"{tool} is not installed: the survey stays untested")


@lru_cache(None)
def program(number: int = 0) -> bytes:
    """Return a program without SFrame; each number gives other contents."""
    return plain_program() + b"%d" % number


@lru_cache(None)
def plain_program() -> bytes:
    """Return a small shared library of the system, which has DWARF CFI and no SFrame."""
    found = sorted(Path("/usr/lib").glob("*-linux-gnu/libdl.so.2"))
    if not found:
        absent("no /usr/lib/*/libdl.so.2: the survey of files without SFrame stays untested")
    return found[0].read_bytes()


@lru_cache(None)
def with_sframe() -> bytes:
    """Return a program with SFrame."""
    return build("leaf").read_bytes()


def tar(members: Mapping[str, bytes], *others: tarfile.TarInfo, mode: str = "w") -> bytes:
    """Return an archive with files and other members."""
    stream = BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:  # type: ignore[call-overload]  # any mode
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, BytesIO(data))
        for info in others:
            archive.addfile(info)
    return stream.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    """Return a member that is not a file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def rpm(members: Mapping[str, bytes]) -> bytes:
    """Return an RPM package: lead, signature, header, and a cpio archive compressed by gzip (rpm's file-format.md)."""
    lead = struct.pack(">4sBBhh66shh16s", b"\xed\xab\xee\xdb", 3, 0, 0, 1, b"name", 1, 5, b"")
    entry = struct.pack(">3sB4xII", b"\x8e\xad\xe8", 1, 1, 4) + struct.pack(">IIII", 1000, 4, 0, 1) + bytes(4)
    signature = entry + bytes(-len(entry) % 8)
    return lead + signature + entry + gzip.compress(cpio(members), 1, mtime=0)


def cpio(members: Mapping[str, bytes]) -> bytes:
    """Return an archive in the "new ASCII" format (cpio(5))."""
    data = bytearray()
    for number, (name, content) in enumerate([*members.items(), ("TRAILER!!!", b"")]):
        text = name.encode() + b"\0"
        fields = (number, 0o100644, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(text), 0)
        data += b"070701" + b"".join(b"%08X" % field for field in fields) + text
        data += bytes(-len(data) % 4) + content
        data += bytes(-len(data) % 4)
    return bytes(data)
