"""Writes SFrame sections and the ELF files around them byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

AARCH64_BE, AARCH64, AMD64, S390X = 1, 2, 3, 4

_MACHINES = {AMD64: 62, AARCH64: 183, AARCH64_BE: 183, S390X: 22}
_MASK_BIT, _SIGNED_BIT = 0x10, 0x80
_WORDS = "bhi"


def order(abi: int) -> str:
    """Return the byte order of an ABI, for `struct`."""
    return ">" if abi in (AARCH64_BE, S390X) else "<"


def row(abi: int, start: int, words: Sequence[int], size: int = 0, fp: bool = False, signed: bool = False) -> bytes:
    """Return a row with a start address of one byte; `size` is 0, 1 or 2 for words of 1, 2 or 4 bytes.

    Words are given as signed or unsigned numbers.
    """
    info = (not fp) | len(words) << 1 | size << 5 | _SIGNED_BIT * signed
    bits = 8 << size
    folded = [(word + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1) for word in words]
    return bytes([start, info]) + struct.pack(f"{order(abi)}{len(folded)}{_WORDS[size]}", *folded)


class Function(NamedTuple):
    """An FDE."""

    start: int
    size: int
    rows: Sequence[bytes]
    info: int = 0
    flexible: bool = False
    repetition: int = 0


def section(
    abi: int, functions: Sequence[Function], version: int = 3, ra: int = 0, fp: int = 0, flags: int = 1
) -> bytes:
    """Return a section of version 2 or 3 whose starts are relative to the section."""
    mark = order(abi)
    entries, rows = b"", b""
    for function in functions:
        count, info, repetition = len(function.rows), function.info, function.repetition
        if version == 3:
            entries += struct.pack(mark + "qII", function.start, function.size, len(rows))
            rows += struct.pack(mark + "HBBB", count, info, function.flexible, repetition)
        else:
            entries += struct.pack(
                mark + "iIIIBBH", function.start, function.size, len(rows), count, info, repetition, 0
            )
        rows += b"".join(function.rows)
    header = struct.pack(
        mark + "HBBBbbBIIIII",
        *(0xDEE2, version, flags, abi, fp, ra, 0),
        *(len(functions), sum(len(function.rows) for function in functions), len(rows)),
        *(0, len(entries)),
    )
    return header + entries + rows


def elf(path: Path, abi: int, *sframe: bytes, address: int = 0, symbols: Sequence[tuple[bytes, int, int]] = ()) -> Path:
    """Write a shared library with one `.sframe` section for each of `sframe`, and symbols (name, address, size)."""
    mark = order(abi)
    names = b"\0" + b"".join(name + b"\0" for name, _, _ in symbols)
    table, at = bytes(24), 1
    for name, value, size in symbols:
        table += struct.pack(mark + "IBBHQQ", at, 0x12, 0, 1, value, size)
        at += len(name) + 1
    titles = b"\0.sframe\0.symtab\0.strtab\0.shstrtab\0"
    # Name, type, address, contents, linked section, first global symbol, entry size.
    contents = [(1, 1, address, piece, 0, 0, 0) for piece in sframe]
    contents += [(9, 2, 0, table, len(sframe) + 2, 1, 24), (17, 3, 0, names, 0, 0, 0), (25, 3, 0, titles, 0, 0, 0)]
    body, headers = b"", bytes(64)
    for title, kind, where, piece, link, first, entry in contents:
        flags = 2 if kind == 1 else 0
        place = (where, 64 + len(body), len(piece))
        headers += struct.pack(mark + "IIQQQQIIQQ", title, kind, flags, *place, link, first, 8, entry)
        body += piece + bytes(-len(piece) % 8)
    ident = b"\x7fELF\x02" + (b"\x02" if mark == ">" else b"\x01") + b"\x01" + bytes(9)
    fields = (3, _MACHINES[abi], 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(contents) + 1, len(contents))
    path.write_bytes(ident + struct.pack(mark + "HHIQQQIHHHHHH", *fields) + body + headers)
    return path


def small(path: Path, count: int = 1) -> Path:
    """Write a file with some functions of one row."""
    return elf(path, AMD64, section(AMD64, [Function(16 * i, 16, [row(AMD64, 0, [8])]) for i in range(count)], ra=-8))
