"""Opens a program file to compare its SFrame with its CFI without a process."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from sframe_unwind.arch import Arch
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.debugger.module_agreement import ModuleAgreement
from sframe_unwind.debugger.modules import EH_FRAME, EH_FRAME_HDR, SFRAME, SectionRange, loaded_module
from sframe_unwind.errors import FileError, FormatError, MemoryReadError
from sframe_unwind.image.elf_sections import ElfSections
from sframe_unwind.memory import ReadMemory

_PLT = ".plt"
"""The beginning of the names of sections with stubs, whose code is compared too."""


def agreement_of_file(file: DebugFile, arch: Arch) -> ModuleAgreement:
    """Return the comparison of a linked file, which has been read when this returns.

    :param file: the file that the debugger uses for a module.
    :raises FileError: the file cannot be read.
    :raises FormatError: it is not an ELF file for the architecture, has no section headers, is an object file, whose
        sections have no addresses yet, or has another build ID than the module.
    """
    try:
        with Path(file.path).open("rb") as stream:
            return _agreement(file, stream, arch)
    except (OSError, ValueError) as error:  # ValueError: the path has a NUL
        raise FileError(f"{file.path}: {error}") from error


def _agreement(file: DebugFile, stream: BinaryIO, arch: Arch) -> ModuleAgreement:
    elf = ElfSections(stream, arch)
    if elf.is_relocatable:
        raise FormatError(f"{file.path}: expected a linked file, found an object file")
    if elf.build_id() != file.build_id and (elf.build_id() or file.has_build_id()):
        raise FormatError(f"{file.path}: expected build ID {file.build_id}, found {elf.build_id() or 'none'}")
    contents = {}
    places = {}
    code = []
    for index, section in enumerate(elf.all):
        if not section.is_allocated or not section.has_contents:
            continue
        place = SectionRange(section.address, section.address + section.size)
        if section.is_code:
            code.append((place.start, place.end))
        if section.name in (SFRAME, EH_FRAME, EH_FRAME_HDR) or section.name.startswith(_PLT):
            places[section.name] = place
            contents[place] = elf.contents(index)
    read = _reader(contents)
    return ModuleAgreement(loaded_module(file.path, code, places, 0, read, arch), arch, read)


def _reader(contents: dict[SectionRange, bytes]) -> ReadMemory:
    def read(address: int, size: int) -> bytes:
        for place, data in contents.items():
            if place.start <= address and address + size <= place.end:
                return data[address - place.start : address - place.start + size]
        raise MemoryReadError(address, size)

    return read
