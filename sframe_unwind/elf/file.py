"""SFrame sections in ELF files, through pyelftools."""

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
from sframe_unwind.elf.reader import FileReader
from sframe_unwind.elf.relocation import Relocations
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.errors import FileError, FormatError, NoSFrameError, SFrameError
from sframe_unwind.memory import Data, LazyBytes
from sframe_unwind.sframe import header
from sframe_unwind.sframe.section import Section

PathLike = Union[str, Path]

SECTION_NAME = ".sframe"
SHT_GNU_SFRAME = (0x6FFFFFF4, "SHT_GNU_SFRAME")
"""As a number, and as a pyelftools that knows the type names it.  Before binutils 2.45: PROGBITS."""
PT_GNU_SFRAME = (0x6474E554, "PT_GNU_SFRAME")

_CHUNK = 4096
"""One page: what reading less would cost anyway."""


def load(file: PathLike | bytes, lazy: bool = True) -> list[Section]:
    """Open the SFrame sections of an ELF file; there is one, save in object files with section groups.

    :param file: the path of the file, or its contents.
    :param lazy: read the tables of a file piece by piece as they are asked for; ``False`` for work that needs them all.
    :raises FileError: not readable, not an ELF file, or truncated.
    :raises NoSFrameError: the file has no SFrame section.
    :raises FormatError: the section is malformed, or made for another machine than the file.
    """
    if isinstance(file, bytes):
        with parsed(BytesIO(file), "<bytes>") as elf:
            return load_from(elf)
    with opened(file) as elf:
        return load_from(elf, file if lazy else None)


def load_from(elf: ELFFile, path: PathLike | None = None, layout: Layout | None = None) -> list[Section]:
    """Open the SFrame sections of an ELF file that is open.

    :param path: read the tables from this file, piece by piece as they are asked for; ``None``: read all now.
    :param layout: where the sections of an object file are to lie; by default all are at 0, as for readelf.
    :raises FileError: truncated.
    :raises NoSFrameError: the file has no SFrame section.
    :raises FormatError: the section is malformed, or made for another machine than the file.
    """
    relocations = Relocations(elf, layout.addresses if layout else ())
    found = _numbered_sframe_sections(elf)
    sections = [
        Section(
            relocations.relocated(number, section)
            or _contents(path, elf, section["sh_offset"], section["sh_size"]),
            layout.addresses[number] if layout else section["sh_addr"],
            relocated=elf["e_type"] == "ET_REL",
        )
        for number, section in found
    ] or [
        Section(_contents(path, elf, segment["p_offset"], segment["p_filesz"]), segment["p_vaddr"], size_known=False)
        for segment in elf.iter_segments()
        if segment["p_type"] in PT_GNU_SFRAME and segment["p_filesz"]  # objcopy empties it, when it takes the section
    ]
    if not sections:
        raise NoSFrameError(f"no {SECTION_NAME} section")
    for section in sections:
        _check_machine(elf, section)
    for (number, _), section in zip(found, sections):
        relocations.check_targets(number, section)
    return sections


def sframe_sections(elf: ELFFile) -> list[ElfSection]:
    """Return the section headers of all SFrame sections with contents, by name or by type."""
    return [section for _, section in _numbered_sframe_sections(elf)]


def _numbered_sframe_sections(elf: ELFFile) -> list[tuple[int, ElfSection]]:
    return [
        (number, section)
        for number, section in enumerate(elf.iter_sections())
        if (section.name == SECTION_NAME or section["sh_type"] in SHT_GNU_SFRAME)
        and section["sh_type"] != "SHT_NOBITS"  # a separate debug file keeps the header alone
    ]


@contextmanager
def opened(path: PathLike) -> Iterator[ELFFile]:
    """Open an ELF file of 64 bits.

    :raises FileError: it cannot be read or is no such file, or pyelftools fails on it in the ``with`` block.
    """
    try:
        with Path(path).open("rb") as stream, parsed(stream, str(path)) as elf:
            yield elf
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error


@contextmanager
def parsed(stream: BinaryIO, name: str) -> Iterator[ELFFile]:
    """Have pyelftools parse an ELF file of 64 bits.

    :param name: what the file is called.
    :raises FileError: it is no such file, or pyelftools fails on it in the ``with`` block.  To errors of this kind and
        :class:`NoSFrameError` that the block raises, the name is added.
    """
    with translated(f"{name}: not a readable ELF file"):
        elf = ELFFile(stream)
        if elf.elfclass != 64:
            raise FileError(f"{name}: a 32-bit ELF file; SFrame exists for 64-bit ABIs only")
        try:
            yield elf
        except (FileError, NoSFrameError) as error:
            raise type(error)(f"{name}: {error}") from error


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn whatever pyelftools lets escape into a :class:`FileError` that begins with ``what``."""
    try:
        yield
    except (SFrameError, OSError):
        raise
    except Exception as error:
        # pyelftools lets errors of many types escape on malformed files (ELFError, construct's own,
        # KeyError, UnicodeDecodeError, ...); to a user they all mean the same.
        raise FileError(f"{what}: {str(error) or type(error).__name__}") from error


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

    :raises FileError: it is none that SFrame has an ABI for.
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
