"""Opens a program file to compare its SFrame with its CFI without a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import CfiSection, SectionData
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.debugger.elf_files import build_id_of, opened_file
from sframe_unwind.debugger.module_agreement import ModuleAgreement
from sframe_unwind.debugger.modules import EH_FRAME, EH_FRAME_HDR, SFRAME
from sframe_unwind.errors import FormatError, MemoryReadError
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Module

if TYPE_CHECKING:
    from sframe_unwind.elf import ElfBinary

_COMPARED = (SFRAME, EH_FRAME, ".plt")
"""The beginnings of the names of sections to read; those with stubs have code that is compared too."""


def agreement_of_file(file: DebugFile, arch: Arch) -> ModuleAgreement:
    """Return the comparison of a linked file, which has been read when this returns.

    :param file: the file that the debugger uses for a module.
    :raises FileError: the file cannot be read, or is not an ELF file for the architecture.
    :raises FormatError: it has no section headers, is an object file, whose sections have no addresses yet, or has
        another build ID than the module.
    """
    with opened_file(file, arch) as binary:
        return _agreement(file, binary, arch)


def _agreement(file: DebugFile, binary: ElfBinary, arch: Arch) -> ModuleAgreement:
    if binary.is_object:
        raise FormatError(f"{file.path}: expected a linked file, found an object file")
    if not binary.sections:
        raise FormatError(f"{file.path}: expected section headers, found none")
    build_id = build_id_of(binary)
    if build_id != file.build_id and (build_id or file.has_build_id()):
        raise FormatError(f"{file.path}: expected build ID {file.build_id}, found {build_id or 'none'}")
    sections: dict[str, SectionData] = {}
    for section in binary.sections:
        if section.name.startswith(_COMPARED) and section.is_loaded and section.has_contents:
            sections[section.name] = SectionData(section.address, binary.contents(section))
    sframe, frames = sections.get(SFRAME), sections.get(EH_FRAME)

    def read(address: int, size: int) -> bytes:
        for start, data in sections.values():
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        raise MemoryReadError(address, size)

    module = Module(
        file.path,
        (),  # its code is not looked up by address
        lambda: Section(sframe.data, sframe.address) if sframe is not None and sframe.data else None,
        lambda: CfiSection(frames, sections.get(EH_FRAME_HDR), arch) if frames is not None else None,
    )
    return ModuleAgreement(module, arch, read)
