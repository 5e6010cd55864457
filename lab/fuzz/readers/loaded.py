"""Libraries in the memory of a process: program headers, build ID, and dynamic symbols."""

from __future__ import annotations

import functools
import struct
from collections import Counter
from itertools import islice
from pathlib import Path

from lab.fuzz.fields import Field
from lab.fuzz.seeds import Seed
from sframe_unwind import elf
from sframe_unwind.address import ByteOrder
from sframe_unwind.elf.constants import PT_LOAD
from sframe_unwind.errors import MemoryReadError, SFrameError
from sframe_unwind.image.elf_image import build_id_in, read_image
from sframe_unwind.memory import STRUCT_MARKS
from sframe_unwind.process.dynamic_symbols import dynamic_symbols
from tests.abis.debuggers import sysroot

_BASE = 0x7F00_0000_0000
_LIBRARIES = {
    "amd64": Path("/usr/lib/x86_64-linux-gnu/libdl.so.2"),
    **{abi: Path(sysroot(abi), "lib", "libdl.so.2") for abi in ("aarch64", "s390x")},
}
_PARTS = {".dynamic": 8, ".gnu.hash": 4, ".dynsym": 4, ".dynstr": 1}
"""Sections with the data that is read, and the size of their fields."""
_POINTERS = (5, 6, 0x6FFFFEF5)
"""Tags whose values glibc relocates: DT_STRTAB, DT_SYMTAB, DT_GNU_HASH."""
_SYMBOLS = 30


@functools.cache
def seeds() -> tuple[Seed, ...]:
    """Return a library of each machine in memory, with the addresses in its dynamic section relocated or not."""
    found = []
    for abi, path in _LIBRARIES.items():
        data = path.read_bytes()
        with elf.opened(path) as binary:
            loads = [segment for segment in binary.segments if segment.type == PT_LOAD]
            image = bytearray(max(load.address + load.memory_size for load in loads))
            for load in loads:
                image[load.address : load.address + load.file_size] = data[load.offset : load.offset + load.file_size]
            found.append(Seed(f"in the file {abi}", bytes(image), 0))
            dynamic = binary.named(".dynamic")
            assert dynamic is not None
            _relocate(image, dynamic.address, dynamic.size, binary.byteorder)
        found.append(Seed(f"relocated {abi}", bytes(image), 0))
    return tuple(found)


def _relocate(image: bytearray, start: int, size: int, byteorder: ByteOrder) -> None:
    entry = struct.Struct(STRUCT_MARKS[byteorder] + "qQ")
    for at in range(start, start + size, entry.size):
        tag, value = entry.unpack_from(image, at)
        if tag in _POINTERS:
            entry.pack_into(image, at, tag, value + _BASE)


@functools.cache
def _fields_of(abi: str) -> tuple[Field, ...]:
    with elf.opened(_LIBRARIES[abi]) as binary:
        order = binary.byteorder
        found = [Field(at, 8, order) for at in range(0, 64 + 56 * len(binary.segments), 8)]
        found += [Field(54, 2, order), Field(56, 2, order)] * 10
        for name, size in _PARTS.items():
            part = binary.named(name)
            assert part is not None
            found += [Field(at, size, order) for at in range(part.address, part.end - size + 1, size)]
    return tuple(found)


def fields(seed: Seed) -> tuple[Field, ...]:
    """Return program headers, dynamic section, hash table, symbols and names."""
    return _fields_of(seed.name.split()[-1])


def exercise(seed: Seed, seen: Counter[str]) -> str:
    """Read the symbols; in every third input, all memory is readable, so no read fails."""
    data, endless = seed.data, seed.address % 3 == 0

    def read(address: int, size: int) -> bytes:
        start = address - _BASE
        if endless and data:
            start %= len(data)
            return (data * ((start + size) // len(data) + 1))[start : start + size]
        if not 0 <= start <= start + size <= len(data):
            raise MemoryReadError(address, size)
        return data[start : start + size]

    byteorder: ByteOrder = "big" if seed.name.endswith("s390x") else "little"
    try:
        image = read_image(read, _BASE)
    except SFrameError:
        return "no image"
    build_id_in(image, read, byteorder)
    found = dynamic_symbols(image, read, byteorder)
    for symbol in islice(found, _SYMBOLS):
        match = found.find(symbol.address)
        assert match is not None
        assert match[1] == symbol.address - match[0].address >= 0
        assert symbol.name
        seen["loaded: symbols"] += 1
    return "names" if list(islice(found, 1)) else "none"
