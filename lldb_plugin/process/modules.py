"""A module that a target has loaded, in the core's terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

import lldb

from lldb_plugin.process.memory import build_id_of, in_file
from sframe_unwind.arch import Arch
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.debugger.modules import EH_FRAME, EH_FRAME_HDR, SFRAME, TEXT, SectionRange, loaded_module
from sframe_unwind.elf.rewritten import MARKS
from sframe_unwind.errors import FormatError, MemoryReadError
from sframe_unwind.image.elf_image import read_image
from sframe_unwind.memory import ReadMemory
from sframe_unwind.unwind.modules import Module

if TYPE_CHECKING:
    from sframe_unwind.debugger.kernel_modules import ModulePlaces

_STAND_IN = ".module_image"
"""The only section of LLDB's placeholder for a module whose file it does not find."""

AddressOf = Callable[[lldb.SBSection], int]
"""Returns the address of a section; :data:`lldb.LLDB_INVALID_ADDRESS`: it has none.  It waits for no lock of LLDB's."""


FindPlaces = Callable[[], "ModulePlaces | None"]
"""Finds where the kernel in the target has its modules; ``None``: there is no kernel."""


def describe(
    address_of: AddressOf, module: lldb.SBModule, read: ReadMemory, arch: Arch, places: FindPlaces | None = None
) -> Module | None:
    """Return a module in the core's terms; ``None``: it has no code in memory.

    This waits for none of LLDB's locks on the target.

    :param places: called for sections whose addresses LLDB does not know, when unwind data is first needed.
    """
    ranges = []
    code_size = 0
    for section in module.section_iter():
        start = address_of(section)
        if start != lldb.LLDB_INVALID_ADDRESS and section.GetPermissions() & lldb.ePermissionsExecutable:
            ranges.append((start, start + section.GetByteSize()))
            parts = (section.GetSubSectionAtIndex(index) for index in range(section.GetNumSubSections()))
            code_size += sum(part.GetByteSize() for part in parts if part.GetSectionType() == lldb.eSectionTypeCode)
    header_section = header_section_of(module)
    if not module.GetNumSections() and address_of(header_section) != lldb.LLDB_INVALID_ADDRESS:
        ranges = _code_ranges(address_of, header_section)
    if not ranges:
        return None

    # Read now: later, LLDB's locks may be held.
    sections: dict[str, SectionRange] = {}
    sizes: dict[str, int] = {}
    for name in (SFRAME, EH_FRAME, EH_FRAME_HDR, TEXT):
        section = module.FindSection(name)
        if not section.IsValid():
            continue
        start, sizes[name] = address_of(section), section.GetByteSize()
        if start != lldb.LLDB_INVALID_ADDRESS:
            sections[name] = SectionRange(start, start + sizes[name])
    for name in MARKS:
        section = module.FindSection(name)
        if section.IsValid():  # its name is all that counts
            sections[name] = SectionRange(0, section.GetByteSize())
    path = module.GetFileSpec().fullpath or ""

    def find_sframe() -> SectionRange | None:
        found = places() if places is not None and is_kernel_module(path) else None
        text = sections[TEXT].start if TEXT in sections else None
        return found.sections(path, sizes, text).get(SFRAME) if found is not None else None

    build_id = build_id_of(module)

    def debug_files(_: Callable[[], str]) -> list[DebugFile]:
        # LLDB itself unwinds by this CFI, except in frames further out than an exception in a kernel.
        return [DebugFile(path, build_id)] if places is not None and places() is not None else []

    def code_files(_: Callable[[], str]) -> list[DebugFile]:
        return [DebugFile(path, build_id)]

    header = address_of(header_section) + module.GetObjectFileHeaderAddress().GetOffset()
    others = None if EH_FRAME in sections else debug_files
    return loaded_module(
        name=path,
        ranges=ranges,
        sections=sections,
        header=header,
        read=read,
        arch=arch,
        code_size=code_size or None,
        debug_files=others,
        find_sframe=find_sframe,
        code_files=code_files,
    )


def is_kernel_module(path: str) -> bool:
    """Return whether a file has the name of a kernel module; only for such a file, the code for kernels is loaded."""
    if ".ko" not in path:
        return False
    from sframe_unwind.kernel.modules import module_name

    return module_name(path) is not None


def without_file(target: lldb.SBTarget) -> list[str]:
    """Return the names of modules for which LLDB has an address and no file, as with only a core file."""
    names = [
        module.GetFileSpec().basename for module in target.module_iter() if module.FindSection(_STAND_IN).IsValid()
    ]
    return [name for name in names if not name.startswith("[")]  # [vdso] has no file


def header_section_of(module: lldb.SBModule) -> lldb.SBSection:
    """Return the section, or the segment, that includes the ELF header.

    If a file has no section headers, LLDB lists no section, and gives access to this segment alone.
    """
    return module.GetObjectFileHeaderAddress().GetSection()


def _code_ranges(address_of: AddressOf, segment: lldb.SBSection) -> list[tuple[int, int]]:
    """Return start and end address (exclusive) of the code of a file without section headers.

    LLDB's copy of the file has the program headers; reading memory would wait for LLDB's lock.

    :param segment: the segment with the ELF header and the program headers.
    """
    start = address_of(segment)

    def read(address: int, size: int) -> bytes:
        contents = in_file(segment, address - start, size)
        if contents is None:
            raise MemoryReadError(address, size)
        return contents

    try:
        return read_image(read, start).code_ranges()
    except (FormatError, MemoryReadError):
        return []
