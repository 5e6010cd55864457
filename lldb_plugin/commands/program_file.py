"""The program file of a target without a process, for ``sframe explain ADDRESS``."""

from __future__ import annotations

import lldb

from lldb_plugin.process import places
from lldb_plugin.process.modules import describe
from lldb_plugin.process.process import arch_of
from sframe_unwind.debugger.code_judge import ProcessCode
from sframe_unwind.errors import MemoryReadError, SFrameError
from sframe_unwind.memory import ReadMemory
from sframe_unwind.unwind.modules import Modules


def code(target: lldb.SBTarget) -> ProcessCode:
    """Return the code of a program, at the addresses of its file.

    :raises SFrameError: there is no file, or see :func:`lldb_plugin.process.process.arch_of`.
    """
    module = target.FindModule(target.GetExecutable())
    if not module.IsValid():
        raise SFrameError("no process, and no program file")
    arch = arch_of(target)
    read = _reader(target)
    at = places.in_file(target)
    described = describe(at.address_of, module, read, arch)
    return places.code(at, Modules(arch, [described] if described else [], read=read), read)


def description(target: lldb.SBTarget, modules: Modules, address: int) -> str:
    """Return the function and the line at an address of the file, as far as known."""
    return places.description(places.name_at(places.in_file(target), modules, address))


def _reader(target: lldb.SBTarget) -> ReadMemory:
    def read(address: int, size: int) -> bytes:
        error = lldb.SBError()
        data = target.ReadMemory(target.ResolveFileAddress(address), size, error)
        if not error.Success() or data is None or len(data) != size:
            raise MemoryReadError(address, size)
        return bytes(data)

    return read
