"""The ELF file in `.gnu_debugdata`, damaged before or after it is compressed, and expensive symbol tables."""

from __future__ import annotations

import functools
import lzma
import struct
from collections import Counter
from io import BytesIO
from itertools import islice

from lab.fuzz import file_fields
from lab.fuzz.fields import Field
from lab.fuzz.file_seeds import content_of
from lab.fuzz.seeds import Seed
from sframe_unwind.elf.binary import ElfBinary
from sframe_unwind.elf.constants import SHT_PROGBITS, SHT_STRTAB, SHT_SYMTAB

_INSIDE = ("program plt amd64", "program free_walk version 3 aarch64", "program free_walk version 3 s390x")
_HEADER, _SECTION, _SYMBOL = "<4sBBBB8xHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IBBHQQ"
_XZ = b"\xfd7zXZ\0"
_SYMBOLS = 30


def elf_of(*sections: tuple[str, int, bytes, int]) -> bytes:
    """Return an ELF file for AMD64 with sections: name, type, contents, and the number of a linked section."""
    names, data, headers = b"\0", bytearray(64), [bytes(64)]
    for name, kind, content, link in (*sections, (".shstrtab", SHT_STRTAB, b"", 0)):
        at, names = len(names), names + name.encode() + b"\0"
        content = names if name == ".shstrtab" else content
        headers.append(struct.pack(_SECTION, at, kind, 0, 0, len(data), len(content), link, 0, 1, 24))
        data += content
    fields = (b"\x7fELF", 2, 1, 1, 0, 3, 62, 1, 0, 0, len(data), 0, 64, 56, 0, 64, len(headers), len(headers) - 1)
    struct.pack_into(_HEADER, data, 0, *fields)
    return bytes(data) + b"".join(headers)


def expensive(symbols: int, length: int) -> bytes:
    """Return a file whose symbols share one long name."""
    table = b"".join(struct.pack(_SYMBOL, 1, 2, 0, 1, number, 1) for number in range(symbols))
    return elf_of((".symtab", SHT_SYMTAB, table, 2), (".strtab", SHT_STRTAB, b"\0" + b"a" * length + b"\0", 0))


def _packed(data: bytes) -> bytes:
    return lzma.compress(data, check=lzma.CHECK_NONE, preset=0)


@functools.cache
def seeds() -> tuple[Seed, ...]:
    """Return files to be compressed, and compressed files."""
    inside = [Seed(f"inside {name}", content_of(name), 0) for name in _INSIDE]
    compressed = [seed._replace(name=f"xz of {seed.name}", data=_packed(seed.data)) for seed in inside]
    return (
        *inside,
        *compressed,
        Seed("expensive", expensive(2000, 1 << 18), 0),
        Seed("large", _packed(expensive(20, 1 << 22)), 0),
        Seed("nested", lzma.compress(_packed(content_of(_INSIDE[0]))), 0),
    )


def fields(seed: Seed) -> tuple[Field, ...]:
    """Return the fields of a file, or the first and the last bytes of a compressed one."""
    if not seed.data.startswith(_XZ):
        return file_fields.fields(seed)
    size = len(seed.data)
    return tuple(Field(at, 1, "little") for at in (*range(32), *range(size - 40, size)))


def exercise(seed: Seed, seen: Counter[str]) -> str:
    """Read the symbols of a file that is undamaged except for the embedded file: no exception may be raised."""
    content = seed.data if seed.data.startswith(_XZ) else _packed(seed.data)
    found = ElfBinary(BytesIO(elf_of((".gnu_debugdata", SHT_PROGBITS, content, 0))), "fuzzed").symbols
    for symbol in islice(found, _SYMBOLS):
        match = found.find(symbol.address)
        assert match is not None
        assert match[1] == symbol.address - match[0].address >= 0
        assert symbol.name
        seen["embedded: symbols"] += 1
    return "names" if list(islice(found, 1)) else "none"
