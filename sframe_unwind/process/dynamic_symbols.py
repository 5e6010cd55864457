"""Reads the dynamic symbol table of a loaded object in memory, if its file is not available."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from sframe_unwind.address import ByteOrder
from sframe_unwind.elf.constants import DT_GNU_HASH, DT_NULL, DT_STRSZ, DT_STRTAB, DT_SYMTAB, PT_DYNAMIC, SYMBOL
from sframe_unwind.elf.records import DynamicEntry, layout
from sframe_unwind.elf.records import decoded as entries_of
from sframe_unwind.elf.symbols import Symbols, decoded
from sframe_unwind.errors import FileError, MemoryReadError
from sframe_unwind.image.elf_image import Image
from sframe_unwind.memory import STRUCT_MARKS, ReadMemory

_MAX_SYMBOLS = 1 << 18
"""Maximum number of symbols, more than the largest libraries have: a damaged table can claim any number."""
_MAX_NAMES = 1 << 25
"""Maximum size of the names in bytes."""
_MAX_TAGS = 1 << 12


def dynamic_symbols(image: Image, read: ReadMemory, byteorder: ByteOrder) -> Symbols:
    """Return the symbols of an image in memory, at their addresses in its file; none if they cannot be read.

    Their number follows from the GNU hash table; without one, there are none.

    :param read: reads the memory of the process.
    """
    mark = STRUCT_MARKS[byteorder]
    try:
        tags = dict(_tags(image, read, byteorder))
        if not {DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_GNU_HASH} <= tags.keys():
            return Symbols([])
        first = min(segment.address for segment in image.segments)

        def address(tag: int) -> int:
            # The dynamic linker of glibc relocates these values in memory; others leave the values of the file.
            return tags[tag] if tags[tag] >= first else tags[tag] + image.bias

        count = _count(address(DT_GNU_HASH), read, mark)
        entry = struct.Struct(mark + SYMBOL)
        entries = read(address(DT_SYMTAB), count * entry.size)
        names = read(address(DT_STRTAB), min(tags[DT_STRSZ], _MAX_NAMES))
        addresses = (fields[4] for fields in entry.iter_unpack(entries))
        return Symbols(decoded(addresses, entry.iter_unpack(entries), names))
    except (MemoryReadError, FileError):
        return Symbols([])


def _tags(image: Image, read: ReadMemory, byteorder: ByteOrder) -> Iterator[tuple[int, int]]:
    each = layout(DynamicEntry, byteorder).size
    for segment in image.segments:
        if segment.type == PT_DYNAMIC:
            size = min(segment.memory_size // each, _MAX_TAGS) * each
            for tag, value in entries_of(DynamicEntry, read(segment.address, size), byteorder):
                if tag == DT_NULL:
                    return
                yield tag, value


def _count(table: int, read: ReadMemory, mark: str) -> int:
    """Return the number of symbols, one more than the last one in a GNU hash table; at most :data:`_MAX_SYMBOLS`."""
    header: tuple[int, int, int, int] = struct.unpack(mark + "IIII", read(table, 16))
    buckets, first, bloom_words, _ = header
    buckets, start = min(buckets, _MAX_SYMBOLS), table + 16 + 8 * bloom_words
    heads: tuple[int, ...] = struct.unpack(f"{mark}{buckets}I", read(start, 4 * buckets))
    last = max(heads, default=0)
    if last < first:
        return min(first, _MAX_SYMBOLS)  # no symbol is defined here
    chains = start + 4 * buckets
    while last < _MAX_SYMBOLS:
        (value,) = struct.unpack(mark + "I", read(chains + 4 * (last - first), 4))
        last += 1
        if value & 1:  # the end of the chain
            break
    return min(last, _MAX_SYMBOLS)
