"""Fuzzes debug information: the source lines and inlined functions of addresses."""

from __future__ import annotations

import functools
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from random import Random
from typing import NamedTuple

from lab.fuzz.fields import Field
from lab.fuzz.mutations import Mutator
from lab.fuzz.scratch import memory_folder
from lab.fuzz.seeds import Seed
from lab.fuzz.target import WrongAnswerError
from sframe_unwind.address import ByteOrder
from sframe_unwind.elf import ElfBinary
from sframe_unwind.errors import FileError
from sframe_unwind.memory import STRUCT_MARKS
from sframe_unwind.source.debug_info import DebugInfo
from tests.hanging import HANG
from tests.samples.build import build

MEMORY = 500 << 20
"""Memory limit: a compressed section may claim any size."""

_SOURCE = Path(__file__).resolve().parents[2] / "tests" / "process" / "inlined.cpp"
_FORMATS = {
    "version 5": ("-gdwarf-5",),
    "version 4": ("-gdwarf-4", "-fdebug-types-section"),
    "version 2": ("-gdwarf-2",),
    "compressed": ("-g", "-gz=zlib"),
}
_OTHER_MACHINES = ("aarch64", "aarch64_be", "s390x")
_ADDRESSES = 24
"""Number of addresses of a program's code that are looked up."""
_MOST_PLACES = 10_000
"""Maximum number of functions inlined into each other at one address."""
_SIZE_OFFSET, _HEADER_SIZE = 32, 64
"""Offset of the size in a section header, and the header's size, in bytes (ELF-64)."""


class _Part(NamedTuple):
    """A debug section of a file."""

    file: str
    offset: int
    size: int
    header: int
    """Offset of its section header in the file."""


class _Program(NamedTuple):
    """An undamaged file."""

    content: bytes
    byteorder: ByteOrder
    addresses: tuple[int, ...]


@functools.cache
def _programs() -> dict[str, _Program]:
    """Return programs of each version of DWARF, and of each machine."""
    return {name: _program(content) for name, content in _contents()}


def _contents() -> Iterator[tuple[str, bytes]]:
    with tempfile.TemporaryDirectory() as folder:
        for name, options in _FORMATS.items():
            program = Path(folder) / "program"
            command: list[str | Path] = ["g++", "-O2", *options, _SOURCE, "-o", program]
            subprocess.run(command, check=True, timeout=HANG)
            yield name, program.read_bytes()
    for abi in _OTHER_MACHINES:
        yield abi, build("free_walk", abi).read_bytes()


def _program(content: bytes) -> _Program:
    binary = ElfBinary(BytesIO(content), "program")
    text = binary.named(".text")
    assert text is not None
    addresses = range(text.address, text.end, max((text.end - text.address) // _ADDRESSES, 1))
    return _Program(content, binary.byteorder, tuple(addresses))


@functools.cache
def _parts() -> dict[str, _Part]:
    """Return the debug sections of all programs."""
    found = {}
    for name, program in _programs().items():
        mark = STRUCT_MARKS[program.byteorder]
        (headers,) = struct.unpack_from(f"{mark}Q", program.content, 0x28)
        for number, section in enumerate(ElfBinary(BytesIO(program.content), name).sections):
            if section.name.startswith(".debug_") and section.size:
                header = headers + number * _HEADER_SIZE
                found[f"{section.name} {name}"] = _Part(name, section.offset, section.size, header)
    return found


@functools.cache
def seeds() -> tuple[Seed, ...]:
    """Return each debug section of each program."""
    return tuple(
        Seed(name, _programs()[part.file].content[part.offset : part.offset + part.size], 0)
        for name, part in _parts().items()
    )


def fields(seed: Seed) -> tuple[Field, ...]:
    """Return the words at the start, where headers are, and all bytes, because most numbers have one byte."""
    byteorder = _programs()[_parts()[seed.name].file].byteorder
    words = [Field(offset, 4, byteorder) for offset in range(min(len(seed.data), 64) - 3)]
    return (*words, *(Field(offset, 1, byteorder) for offset in range(len(seed.data))))


@functools.cache
def _mutator() -> Mutator:
    return Mutator(seeds(), fields)


def made(number: int) -> Seed:
    """Return the input of a number: one damaged section."""
    return _mutator().mutate(Random(number))


@functools.cache
def _path() -> Path:
    """Return the path of a file of this process in memory."""
    return memory_folder() / "program"


def exercise(seed: Seed, seen: Counter[str]) -> None:
    """Look up the places of addresses of a program with one damaged section.

    :param seen: counts the results.
    :raises WrongAnswerError: an answer contradicts itself.  Any other exception is also a failure.
    """
    part = _parts()[seed.name]
    program = _programs()[part.file]
    content = bytearray(program.content)
    size = min(len(seed.data), part.size)
    content[part.offset : part.offset + size] = seed.data[:size]
    struct.pack_into(f"{STRUCT_MARKS[program.byteorder]}Q", content, part.header + _SIZE_OFFSET, size)
    _path().write_bytes(content)
    try:
        info = DebugInfo(_path())
        answers = [info.places(address) for address in program.addresses]
    except FileError:
        seen["rejected"] += 1
        return
    for places in answers:
        if len(places) > _MOST_PLACES or any(place.line < 0 for place in places):
            raise WrongAnswerError(f"{len(places)} places: {places[:3]}")
        seen["places" if places else "no place"] += 1
