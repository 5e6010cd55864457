"""Converts between addresses and LLDB's objects for them, in a process or in a program's file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

import lldb

from sframe_unwind.debugger.code_judge import ProcessCode
from sframe_unwind.memory import ReadMemory
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind.modules import Modules

if TYPE_CHECKING:
    from sframe_unwind.debugger.contexts import Name


class Places(NamedTuple):
    """The addresses of one target."""

    resolve: Callable[[int], lldb.SBAddress]
    """Returns LLDB's object for an address."""
    address_of: Callable[[lldb.SBSection | lldb.SBAddress], int]
    """Returns the address of an object of LLDB; :data:`lldb.LLDB_INVALID_ADDRESS`: it has none."""


def in_process(target: lldb.SBTarget) -> Places:
    """Return the addresses in a target's process."""
    return Places(target.ResolveLoadAddress, lambda part: int(part.GetLoadAddress(target)))


def in_file(target: lldb.SBTarget) -> Places:
    """Return the addresses in a target's program file."""
    return Places(target.ResolveFileAddress, lambda part: int(part.GetFileAddress()))


def name_at(places: Places, modules: Modules, address: int) -> Name:
    """Return the name of the code at an address."""
    from lldb_plugin.process.inlining import functions  # not where only stacks are needed
    from sframe_unwind.debugger.contexts import Name

    resolved = places.resolve(address)
    module = resolved.GetModule().GetFileSpec()
    function, symbol = resolved.GetFunction(), resolved.GetSymbol()
    name = function.GetName() if function.IsValid() else symbol.GetName() if symbol.IsValid() else ""
    line = [context for context, _ in functions(resolved)][-1].GetLineEntry()  # of the function, not of an inlined one
    place = module.GetFilename() or ""
    if line.IsValid() and line.GetLine():
        place = f"{line.GetFileSpec().GetFilename()}:{line.GetLine()}"
    found = modules.find(address)
    if not name and found is not None and found.run_time_name(address):
        return Name(found.run_time_name(address), found.name, found.name)
    return Name(name or "", place, module.fullpath or "")


def description(name: Name) -> str:
    """Return a name as one text: function and line, as far as known."""
    return f"{name.function} ({name.place})" if name.place else name.function


def code(places: Places, modules: Modules, read: ReadMemory) -> ProcessCode:
    """Return the code of some modules."""

    def name_of(address: int) -> str:
        symbol = places.resolve(address).GetSymbol()
        # LLDB invents symbols for functions that only unwind data describes.
        if not symbol.IsValid() or symbol.IsSynthetic() or places.address_of(symbol.GetStartAddress()) != address:
            return ""
        return symbol.GetMangledName() or symbol.GetName() or ""

    return ProcessCode(modules, read, name_of)
