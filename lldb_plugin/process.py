"""A stopped process in the core's terms: its ABI, registers, memory and modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import lldb

from lldb_plugin.memory import reader
from lldb_plugin.runtime_code import run_time_code
from sframe_unwind.arch import BY_NAME, Arch
from sframe_unwind.cfi.section import CfiSection, SectionData
from sframe_unwind.errors import FormatError, MemoryReadError, SFrameError, StepError
from sframe_unwind.image.elf_image import read_image
from sframe_unwind.memory import ReadMemory, ReadRegister, lazy_memory
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind import signal_frame
from sframe_unwind.unwind.modules import Module, Modules

_ARCHITECTURES = {
    "x86_64": "amd64",
    "aarch64": "aarch64",
    "aarch64_be": "aarch64",
    "arm64": "aarch64",
    "s390x": "s390x",
}
_NO_MASK = (1 << 64) - 1
"""``LLDB_INVALID_ADDRESS_MASK``"""
_TOP_BYTE = 0xFF << 56
"""All that LLDB ignores where the target does not tell the bits of signatures."""


def arch_of(target: lldb.SBTarget) -> Arch:
    """Return the SFrame ABI of a target.

    :raises SFrameError: SFrame has none for it, or LLDB itself is wrong about its registers.
    """
    triple = target.GetTriple() or "this target"
    name = _ARCHITECTURES.get(triple.partition("-")[0])
    if name is None:
        raise SFrameError(f"SFrame has no ABI for {triple}")
    # A debug stub may call the target plain AArch64, and LLDB takes its word even for the program's file.
    if name == "aarch64" and (
        target.GetByteOrder() == lldb.eByteOrderBig or _is_big_endian(target.GetExecutable().fullpath)
    ):
        raise SFrameError("LLDB reads big-endian AArch64 registers in the wrong byte order: its frames are wrong")
    return BY_NAME[name]


def _is_big_endian(file: str | None) -> bool:
    try:
        with Path(file or "").open("rb") as opened:
            header = opened.read(6)
    except OSError:
        return False
    return header[:4] == b"\x7fELF" and header[5:] == b"\x02"


class Process:
    """What unwinding needs of one process while it stands still."""

    def __init__(self, process: lldb.SBProcess, arch: Arch, modules: Modules) -> None:
        self.arch = arch
        self.modules = modules
        modules.look_again()
        self.read = reader(process)
        mask = process.GetAddressMask(lldb.eAddressMaskTypeCode) if arch.pac_mask else 0
        self.pac_mask = None if mask == _NO_MASK or not mask & ~_TOP_BYTE else mask

    def is_trampoline(self, pc: int) -> bool:
        """Return whether the code at an address returns from a signal handler."""
        return signal_frame.is_trampoline(self.arch, self.read, pc)

    def register_reader(self, frame: lldb.SBFrame) -> ReadRegister:
        """Return the function that reads a register of a frame by its DWARF number."""

        def read_register(number: int) -> int:
            name = self.arch.register_name(number)
            value = frame.FindRegister(name)
            data = value.GetData() if value.IsValid() else None
            error = lldb.SBError()
            word = data.GetUnsignedInt64(error, 0) if data is not None and data.GetByteSize() >= 8 else None
            if word is None or not error.Success():
                raise StepError(f"{name} is not known here")
            return int(word)

        return read_register


def list_modules(target: lldb.SBTarget, read: ReadMemory, arch: Arch, report: Callable[[str], None]) -> Modules:
    """Return the modules that a target has loaded."""
    modules = (_module(target, module, read, arch) for module in target.module_iter())
    found = [module for module in modules if module is not None]
    return Modules(arch, found, report, run_time=run_time_code(target, read, arch, report))


def signature(target: lldb.SBTarget) -> tuple[Any, ...]:
    """Return what changes whenever a module is loaded, unloaded, moved or replaced."""
    return tuple(
        (module.GetUUIDString(), module.GetFileSpec().fullpath, _header_address(target, module))
        for module in target.module_iter()
    )


def _header_address(target: lldb.SBTarget, module: lldb.SBModule) -> int:
    return int(module.GetObjectFileHeaderAddress().GetLoadAddress(target))


def _module(target: lldb.SBTarget, module: lldb.SBModule, read: ReadMemory, arch: Arch) -> Module | None:
    ranges = []
    code_size = 0
    for section in module.section_iter():
        start = section.GetLoadAddress(target)
        if start != lldb.LLDB_INVALID_ADDRESS and section.GetPermissions() & lldb.ePermissionsExecutable:
            ranges.append((start, start + section.GetByteSize()))
            parts = (section.GetSubSectionAtIndex(index) for index in range(section.GetNumSubSections()))
            code_size += sum(part.GetByteSize() for part in parts if part.GetSectionType() == lldb.eSectionTypeCode)
    if not ranges:
        return None

    def place(name: str) -> tuple[int, int] | None:
        section = module.FindSection(name)
        start = section.GetLoadAddress(target) if section.IsValid() else lldb.LLDB_INVALID_ADDRESS
        return None if start == lldb.LLDB_INVALID_ADDRESS else (start, section.GetByteSize())

    # Asked for now: later questions come where LLDB's locks may be held.
    sframe, frames, index = place(".sframe"), place(".eh_frame"), place(".eh_frame_hdr")
    header = _header_address(target, module)

    def load() -> Section | None:
        if sframe is not None:
            return Section(lazy_memory(read, sframe[0], sframe[1]), sframe[0])
        # The section headers may have been stripped; the program headers are in memory then.
        try:
            image = read_image(read, header)
        except (FormatError, MemoryReadError):
            return None
        return image.sframe_section(read)

    def piece(found: tuple[int, int]) -> SectionData:
        return SectionData(found[0], lazy_memory(read, found[0], found[1]))

    def load_cfi() -> CfiSection | None:
        return CfiSection(piece(frames), piece(index) if index else None, arch) if frames else None

    return Module(module.GetFileSpec().fullpath or "", ranges, load, load_cfi, code_size or None)
