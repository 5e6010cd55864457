"""The modules that a target has loaded."""

from __future__ import annotations

from typing import Callable

import lldb

from lldb_plugin.runtime_code import run_time_code
from sframe_unwind.arch import Arch
from sframe_unwind.debugger.modules import EH_FRAME, EH_FRAME_HDR, SFRAME, SectionRange, loaded_module
from sframe_unwind.memory import ReadMemory
from sframe_unwind.unwind.modules import Module, Modules


def list_modules(
    target: lldb.SBTarget, read: ReadMemory, arch: Arch, report: Callable[[str], None], generates: bool
) -> Modules:
    """Return the modules that a target has loaded.

    :param generates: those without SFrame get what can be made of their CFI.
    """
    modules = (_module(target, module, read, arch) for module in target.module_iter())
    found = [module for module in modules if module is not None]
    generate = None
    if generates:
        from sframe_unwind.debugger.generating import generator

        generate = generator(arch)
    return Modules(
        arch, found, report, run_time=run_time_code(target, read, arch, report), generate=generate, read=read
    )


class LoadedModules:
    """The modules that a target has loaded at one time.

    A module that is unloaded, moved or replaced is no longer where it was; one that is loaded adds to their number.
    """

    def __init__(self, target: lldb.SBTarget) -> None:
        headers = [module.GetObjectFileHeaderAddress() for module in target.module_iter()]
        self._headers = [(header, header.GetLoadAddress(target)) for header in headers]

    def are_still(self, target: lldb.SBTarget) -> bool:
        """Return whether the target has loaded the same modules at the same addresses now."""
        return target.GetNumModules() == len(self._headers) and all(
            header.GetLoadAddress(target) == address for header, address in self._headers
        )


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

    # Asked for now: later questions come where LLDB's locks may be held.
    sections: dict[str, SectionRange] = {}
    for name in (SFRAME, EH_FRAME, EH_FRAME_HDR):
        section = module.FindSection(name)
        start = section.GetLoadAddress(target) if section.IsValid() else lldb.LLDB_INVALID_ADDRESS
        if start != lldb.LLDB_INVALID_ADDRESS:
            sections[name] = SectionRange(start, start + section.GetByteSize())
    header = int(module.GetObjectFileHeaderAddress().GetLoadAddress(target))
    return loaded_module(module.GetFileSpec().fullpath or "", ranges, sections, header, read, arch, code_size or None)
