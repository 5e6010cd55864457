"""The Linux kernel that LLDB is attached to."""

from __future__ import annotations

from collections.abc import Sequence

import lldb

from lldb_plugin.process.memory import in_file
from sframe_unwind.arch import Arch
from sframe_unwind.errors import KernelError, MemoryReadError
from sframe_unwind.kernel.entry_code import find_places
from sframe_unwind.kernel.linux import Kernel
from sframe_unwind.kernel.orc_of_kernel import find_orc
from sframe_unwind.kernel.types import Member, Type, Types
from sframe_unwind.memory import ReadMemory

_PROBE = "linux_banner"
"""The name of a variable that every kernel has, and no program."""
_COMPOUND = lldb.eTypeClassStruct | lldb.eTypeClassUnion | lldb.eTypeClassClass


def kernel_of(target: lldb.SBTarget, arch: Arch, read: ReadMemory) -> Kernel:
    """Return the kernel that runs in a target.

    :raises KernelError: the target is not a kernel, or its architecture is not supported.
    :raises MemoryReadError: its code cannot be read.
    """

    def symbol(name: str) -> int | None:
        for found in target.FindSymbols(name):
            address = found.GetSymbol().GetStartAddress().GetLoadAddress(target)
            if address != lldb.LLDB_INVALID_ADDRESS:
                return int(address)
        return None

    def find_type(tag: str) -> Type | None:
        found = target.FindFirstType(tag)
        return _type(found) if found.IsValid() else None

    def read_code(address: int, size: int) -> bytes:
        place = lldb.SBAddress(address, target)
        in_file = _code_of_file(place, size)
        if in_file is not None:
            return in_file
        # The error is about the memory of the process, even if the bytes come from the file.
        data = target.ReadMemory(place, size, lldb.SBError())
        if data is None or len(data) != size:
            raise MemoryReadError(address, size)
        return bytes(data)

    if symbol(_PROBE) is None:
        raise KernelError(f"no symbol {_PROBE}: the target is not a Linux kernel, or its symbols are not loaded")
    if arch.linux_kernel is None:
        raise KernelError(f"the stacks of Linux kernels on {arch.name} are not known")
    places, orc = find_places(arch, symbol, read_code), find_orc(symbol, read_code)
    return Kernel(
        arch=arch, facts=arch.linux_kernel, places=places, types=Types(find_type), symbol=symbol, read=read, orc=orc
    )


def _code_of_file(place: lldb.SBAddress, size: int) -> bytes | None:
    """Return code from the kernel's file; ``None``: the place is in no section of code there.

    The kernel frees its initial code, in which the stack of an idle task ends.  LLDB itself reads the file only where
    the segment cannot be written, and that of initial code on s390x can.
    """
    section = place.GetSection()
    if not section.IsValid() or not section.GetPermissions() & lldb.ePermissionsExecutable:
        return None
    return in_file(section, place.GetOffset(), size)


def _type(found: lldb.SBType) -> Type:
    plain = found.GetCanonicalType()

    def members() -> Sequence[Member]:
        if not plain.GetTypeClass() & _COMPOUND:
            return ()
        fields = (plain.GetFieldAtIndex(index) for index in range(plain.GetNumberOfFields()))
        return [Member(field.GetName() or "", field.GetOffsetInBytes(), _type(field.GetType())) for field in fields]

    def element() -> Type | None:
        return _type(plain.GetArrayElementType()) if plain.IsArrayType() else None

    return Type(int(plain.GetByteSize()), members, element)
