"""Opens the SFrame sections of ELF files with pyelftools."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Union

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section as ElfSection

from sframe_unwind.arch import ARCHES, Arch
from sframe_unwind.elf._reader import CheckedElf
from sframe_unwind.elf.reader import FileReader, open_file
from sframe_unwind.elf.relocation import Relocations
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.errors import FileError, FormatError, NoSFrameError
from sframe_unwind.memory import Data, LazyBytes
from sframe_unwind.sframe import header
from sframe_unwind.sframe.section import Section

PathLike = Union[str, Path]

SECTION_NAME = ".sframe"
SHT_GNU_SFRAME = (0x6FFFFFF4, "SHT_GNU_SFRAME")
"""The section type as a number, and as the name that newer versions of pyelftools return.  Binutils before 2.45 write
the type PROGBITS."""
PT_GNU_SFRAME = (0x6474E554, "PT_GNU_SFRAME")

_CHUNK = 4096
"""Bytes that one read of a file fetches: one page, since the kernel reads whole pages anyway."""


def load(file: PathLike | bytes, lazy: bool = True) -> list[Section]:
    """Open the SFrame sections of an ELF file.  Only object files with section groups have more than one.

    :param file: the path of the file, or its contents.
    :param lazy: read the tables of a file on demand; ``False``: read the whole section now, for uses that need all.
    :raises FileError: the file cannot be read, is not a 64-bit ELF file, or is truncated.
    :raises NoSFrameError: the file has no SFrame section.
    :raises FormatError: a section is malformed, or its ABI does not match the machine of the file.
    """
    if isinstance(file, bytes):
        with parsed(BytesIO(file), "<bytes>") as elf:
            return load_from(elf)
    with opened(file) as elf:
        return load_from(elf, file if lazy else None)


def load_from(elf: ELFFile, path: PathLike | None = None, layout: Layout | None = None) -> list[Section]:
    """Open the SFrame sections of an open ELF file.

    :param path: read the tables from this file on demand; ``None``: read the whole section now.
    :param layout: the addresses of the sections of an object file; ``None``: all are at 0, as readelf assumes.
    :raises FileError: the file is truncated.
    :raises NoSFrameError: the file has no SFrame section.
    :raises FormatError: a section is malformed, or its ABI does not match the machine of the file.
    """
    relocations = Relocations(elf, layout.addresses if layout else ())
    found = _numbered_sframe_sections(elf)
    sections = [
        Section(
            relocations.relocated(number, section) or _contents(path, elf, section["sh_offset"], section["sh_size"]),
            layout.addresses[number] if layout else section["sh_addr"],
            relocated=elf["e_type"] == "ET_REL",
        )
        for number, section in found
    ] or [
        Section(_contents(path, elf, segment["p_offset"], segment["p_filesz"]), segment["p_vaddr"], size_known=False)
        for segment in elf.iter_segments()
        if segment["p_type"] in PT_GNU_SFRAME and segment["p_filesz"]  # 0 after objcopy removed the section
    ]
    if not sections:
        raise NoSFrameError(f"no {SECTION_NAME} section")
    for section in sections:
        _check_machine(elf, section)
    for (number, _), section in zip(found, sections):
        relocations.check_targets(number, section)
    return sections


def sframe_sections(elf: ELFFile) -> list[ElfSection]:
    """Return the pyelftools objects of all SFrame sections with contents.  Name or type identifies them."""
    return [section for _, section in _numbered_sframe_sections(elf)]


def _numbered_sframe_sections(elf: ELFFile) -> list[tuple[int, ElfSection]]:
    return [
        (number, section)
        for number, section in enumerate(elf.iter_sections())
        if (section.name == SECTION_NAME or section["sh_type"] in SHT_GNU_SFRAME)
        and section["sh_type"] != "SHT_NOBITS"  # a separate debug file keeps only the section header
    ]


@contextmanager
def opened(path: PathLike) -> Iterator[ELFFile]:
    """Open a 64-bit ELF file.

    :raises FileError: the file cannot be read, or is not a 64-bit ELF file.
    """
    try:
        with open_file(path) as stream, parsed(stream, str(path)) as elf:
            yield elf
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error


@contextmanager
def parsed(stream: BinaryIO, name: str) -> Iterator[ELFFile]:
    """Parse a 64-bit ELF file with pyelftools.

    :param name: name of the file in error messages.  It is added to each :class:`FileError` and
        :class:`NoSFrameError` that the ``with`` block raises.
    :raises FileError: the stream is not a 64-bit ELF file.
    """
    try:
        yield CheckedElf(stream)
    except (FileError, NoSFrameError) as error:
        raise type(error)(f"{name}: {error}") from error


def _contents(path: PathLike | None, elf: ELFFile, offset: int, size: int) -> Data:
    available = elf.stream.seek(0, os.SEEK_END)
    if offset + size > available:
        raise FileError(f"truncated: SFrame data ends at {offset + size:#x}, the file at {available:#x}")
    if path is None:
        elf.stream.seek(offset)
        return bytes(elf.stream.read(size))
    reader = FileReader(path)

    def fetch(start: int, length: int) -> bytes:
        piece = reader.read(offset + start, length)
        if len(piece) != length:
            raise FileError(f"{path}: file became shorter while it was read")
        return piece

    return LazyBytes(fetch, size, _CHUNK)


def arch_of(elf: ELFFile) -> Arch:
    """Return the architecture of an ELF file.

    :raises FileError: SFrame has no ABI for the machine of the file.
    """
    order = "little" if elf.little_endian else "big"
    for arch in ARCHES:
        if (arch.elf_machine, arch.byteorder) == (elf["e_machine"], order):
            return arch
    raise FileError(f"a {order}-endian file for {elf['e_machine']}, for which SFrame has no ABI")


def _check_machine(elf: Any, section: Section) -> None:
    for table in section.tables:
        arch = table.arch
        order = "little" if elf.little_endian else "big"
        if arch.elf_machine != elf["e_machine"] or arch.byteorder != order:
            raise FormatError(
                f"SFrame ABI {table.header.abi.value} ({arch.name}) in a {order}-endian file for {elf['e_machine']}",
                table.offset + header.ABI_OFFSET,
            )
