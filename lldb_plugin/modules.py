"""A module that a target has loaded, in the core's terms."""

from __future__ import annotations

import lldb

from sframe_unwind.arch import Arch
from sframe_unwind.debugger.modules import EH_FRAME, EH_FRAME_HDR, SFRAME, SectionRange, loaded_module
from sframe_unwind.memory import ReadMemory
from sframe_unwind.unwind.modules import Module


def describe(target: lldb.SBTarget, module: lldb.SBModule, read: ReadMemory, arch: Arch) -> Module | None:
    """Return a module in the core's terms; ``None``: it has no code in memory.

    This waits for none of LLDB's locks on the target.
    """
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
    address = module.GetObjectFileHeaderAddress()
    header = int(address.GetSection().GetLoadAddress(target)) + int(address.GetOffset())
    return loaded_module(module.GetFileSpec().fullpath or "", ranges, sections, header, read, arch, code_size or None)
