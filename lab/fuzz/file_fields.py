"""Locates the fields of whole files: headers, symbols, relocations, notes, unwind and debug data, archive members."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from lab.fuzz import fields as section_fields
from lab.fuzz.fields import Field
from lab.fuzz.seeds import Seed
from sframe_unwind.address import ByteOrder
from sframe_unwind.errors import FormatError

_ELF = b"\x7fELF"
_HEADER = "BBBBB7xHHIQQQIHHHHHH"
_SECTION, _SEGMENT = "IIQQQQIIQQ", "IIQQQQQQ"
_SYMBOL, _RELOCATION, _NOTE = "IBBHQQ", "QQq", "III"
_SYMBOLS, _RELOCATIONS, _NOTES = (2, 11), (4,), (7,)
"""Section types: SHT_SYMTAB and SHT_DYNSYM, SHT_RELA, SHT_NOTE."""
_PT_NOTE = 4
_RAW = (".eh_frame", ".eh_frame_hdr", ".shstrtab", ".strtab", ".gnu_debuglink")
"""Sections, besides those of debug information, in which all words and bytes are fields."""
_FROM_EACH = 40
"""Maximum number of fields of each group, so that a table of a thousand symbols does not outweigh a header."""


class _Part(NamedTuple):
    name: str
    kind: int
    offset: int
    size: int
    address: int


def fields(seed: Seed) -> tuple[Field, ...]:
    """Return fields of a file, some of each group."""
    random = Random(0)
    found: list[Field] = []
    for group in _groups(seed.data):
        found += random.sample(group, min(_FROM_EACH, len(group)))
    return tuple(found)


def _groups(data: bytes) -> Iterator[list[Field]]:
    if data.startswith(b"!<"):
        yield [Field(offset, size, "little") for offset, size in _archive_fields(data)]
    start = data.find(_ELF)
    if start >= 0:
        yield from _of_elf(data, start)


def _archive_fields(data: bytes) -> Iterator[tuple[int, int]]:
    for end in (at for at in range(8, len(data)) if data[at : at + 2] == b"`\n"):
        for offset, size in ((0, 2), (0, 1), (1, 1), (8, 8), (48, 2), (48, 8), (56, 2), (58, 2)):
            yield end - 58 + offset, size


def _of_elf(data: bytes, start: int) -> Iterator[list[Field]]:
    order: ByteOrder = "big" if data[start + 5] == 2 else "little"
    mark = ">" if order == "big" else "<"

    def record(offset: int, layout: str) -> list[Field]:
        found, at = [], offset
        for size in (struct.calcsize("=" + letter) for letter in layout.replace("7x", "xxxxxxx")):
            found.append(Field(at, size, order))
            at += size
        return found

    yield record(start + 4, _HEADER)
    (segments, sections) = struct.unpack_from(mark + "QQ", data, start + 32)
    _, segment_count, _, section_count, names = struct.unpack_from(mark + "HHHHH", data, start + 54)
    headers = [start + sections + 64 * number for number in range(section_count)]
    yield [field for offset in headers for field in record(offset, _SECTION)]
    programs = [start + segments + 56 * number for number in range(segment_count)]
    yield [field for offset in programs for field in record(offset, _SEGMENT)]
    parts = [_section(data, start, mark, offset) for offset in headers]
    titles = parts[names].offset if names < len(parts) else 0
    for part in parts:
        name = data[titles + int(part.name) :].partition(b"\0")[0].decode("ascii", "replace")
        yield from _of_part(data, part._replace(name=name), order, record)
    for offset in programs:
        kind, _, at, _, _, size, _, _ = struct.unpack_from(mark + _SEGMENT, data, offset)
        if kind == _PT_NOTE:
            yield _notes(data, start + at, start + at + size, mark, record)


def _section(data: bytes, start: int, mark: str, offset: int) -> _Part:
    name, kind, _, address, at, size, _, _, _, _ = struct.unpack_from(mark + _SECTION, data, offset)
    return _Part(str(name), kind, start + at, size, address)


def _of_part(data: bytes, part: _Part, order: ByteOrder, record: object) -> Iterator[list[Field]]:
    assert callable(record)
    end = part.offset + part.size
    for kinds, layout, size in ((_SYMBOLS, _SYMBOL, 24), (_RELOCATIONS, _RELOCATION, 24)):
        if part.kind in kinds:
            yield [field for offset in range(part.offset, end, size) for field in record(offset, layout)]
    if part.kind in _NOTES:
        yield _notes(data, part.offset, end, ">" if order == "big" else "<", record)
    if part.name == ".sframe":
        try:
            inside = section_fields.fields(Seed("", data[part.offset : end], part.address))
        except FormatError:
            inside = ()
        yield [field._replace(offset=part.offset + field.offset) for field in inside]
    elif part.name in _RAW or part.name.startswith(".debug_"):
        yield [Field(offset, 4, order) for offset in range(part.offset, end - 3, 4)]
        yield [Field(offset, 1, order) for offset in range(part.offset, end)]


def _notes(data: bytes, start: int, end: int, mark: str, record: object) -> list[Field]:
    assert callable(record)
    found: list[Field] = []
    while start + 12 <= end:
        name, size, _ = struct.unpack_from(mark + _NOTE, data, start)
        found += record(start, _NOTE)
        contents = start + 12 + name + -name % 4
        found += [field for at in range(contents, contents + size - 7, 8) for field in record(at, "Q")]
        start = contents + size + -size % 4
    return found
