"""SFrame sections in ELF files, through pyelftools."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Union

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section as ElfSection

from sframe_unwind.errors import FileError, FormatError, NoSFrameError, SFrameError
from sframe_unwind.format import header
from sframe_unwind.format.data import Data, LazyData
from sframe_unwind.relocation import check_targets, relocated
from sframe_unwind.section import Section

PathLike = Union[str, Path]

SECTION_NAME = ".sframe"
SHT_GNU_SFRAME = (0x6FFFFFF4, "SHT_GNU_SFRAME")
"""As a number, and as a pyelftools that knows the type names it.  Before binutils 2.45: PROGBITS."""
PT_GNU_SFRAME = (0x6474E554, "PT_GNU_SFRAME")

_CHUNK = 4096
"""One page: what reading less would cost anyway."""


def load(path: PathLike, lazy: bool = True) -> list[Section]:
    """Open the SFrame sections of an ELF file; there is one, save in object files with section groups.

    :param lazy: read the tables piece by piece as they are asked for; ``False`` for work that needs them all.
    :raises FileError: not readable, not an ELF file, or truncated.
    :raises NoSFrameError: the file has no SFrame section.
    :raises FormatError: the section is malformed, or made for another machine than the file.
    """
    with opened(path) as elf:
        relocatable = elf["e_type"] == "ET_REL"
        sections = [
            Section(
                relocated(elf, found) or _contents(path, elf, found["sh_offset"], found["sh_size"], lazy),
                found["sh_addr"],
                relocated=relocatable,
            )
            for found in sframe_sections(elf)
        ] or [
            Section(
                _contents(path, elf, segment["p_offset"], segment["p_filesz"], lazy),
                segment["p_vaddr"],
                size_known=False,
            )
            for segment in elf.iter_segments()
            if segment["p_type"] in PT_GNU_SFRAME
        ]
        if not sections:
            raise NoSFrameError(f"{path}: no {SECTION_NAME} section")
        for section in sections:
            _check_machine(elf, section)
        if relocatable:
            for found, section in zip(sframe_sections(elf), sections):
                check_targets(elf, found, section)
    return sections


def sframe_sections(elf: ELFFile) -> list[ElfSection]:
    """Return the section headers of all SFrame sections with contents, by name or by type."""
    return [
        section
        for section in elf.iter_sections()
        if (section.name == SECTION_NAME or section["sh_type"] in SHT_GNU_SFRAME)
        and section["sh_type"] != "SHT_NOBITS"  # a separate debug file keeps the header alone
    ]


@contextmanager
def opened(path: PathLike) -> Iterator[ELFFile]:
    """Open an ELF file of 64 bits.

    :raises FileError: it cannot be read or is no such file, or pyelftools fails on it in the ``with`` block.
    """
    try:
        with Path(path).open("rb") as stream:
            elf = ELFFile(stream)
            if elf.elfclass != 64:
                raise FileError(f"{path}: a 32-bit ELF file; SFrame exists for 64-bit ABIs only")
            yield elf
    except SFrameError:
        raise
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error
    except Exception as error:
        # pyelftools lets errors of many types escape on malformed files (ELFError, construct's own,
        # KeyError, UnicodeDecodeError, ...); to a user they all mean the same.
        raise FileError(f"{path}: not a readable ELF file: {str(error) or type(error).__name__}") from error


def _contents(path: PathLike, elf: ELFFile, offset: int, size: int, lazy: bool) -> Data:
    available = os.fstat(elf.stream.fileno()).st_size
    if offset + size > available:
        raise FileError(f"{path}: truncated: SFrame data ends at {offset + size:#x}, the file at {available:#x}")
    if not lazy:
        elf.stream.seek(offset)
        return bytes(elf.stream.read(size))
    stream = Path(path).open("rb")  # noqa: SIM115  # closed when the data that reads from it is dropped

    def fetch(start: int, length: int) -> bytes:
        piece = os.pread(stream.fileno(), length, offset + start)
        if len(piece) != length:
            raise FileError(f"{path}: file became shorter while it was read")
        return piece

    return LazyData(fetch, size, _CHUNK)


def _check_machine(elf: Any, section: Section) -> None:
    for table in section.tables:
        abi = table.abi
        order = "little" if elf.little_endian else "big"
        if abi.elf_machine != elf["e_machine"] or abi.byteorder != order:
            raise FormatError(
                f"SFrame ABI {table.header.abi.value} ({abi.name}) in a {order}-endian file for {elf['e_machine']}",
                table.offset + header.ABI_OFFSET,
            )
