"""The variables of a frame that LLDB has no registers for: values at the addresses that SFrame's registers give.

A variable's place is known where the debug information locates it by the frame base, SP or FP; one in another register
is not shown.  LLDB's interface has a variable's name and type without a frame, but its location only as text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import lldb

from lldb_plugin import option_parser
from lldb_plugin.version import MAJOR
from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import Arch
from sframe_unwind.unwind.walk import Frame

_VARIABLE = re.compile(r'^ *Variable: id = \S+, name = "(.*?)", .*, location = (?:\[.*?\) -> )?(.*?), decl = ', re.M)
_BY_FRAME_BASE = re.compile(r"DW_OP_fbreg ([-+]?\d+)$")
_BY_REGISTER = re.compile(r"DW_OP_breg(\d+) \w+([-+]\d+)$")
_WANTS_DECLARED = MAJOR < 23
"""LLDB 22 shows a value only where it finds the variable of the same name among the values too."""

_OBJECT = "this"
"""The object of a C++ method.  LLDB 22 and 23 take a value for it for granted in an expression, and crash without."""
_NOWHERE = 1 << 63
"""An address that no process has mapped, on any of the machines: what is there cannot be read."""


class Variables(NamedTuple):
    """The arguments and locals of a frame, as far as their places are known, from the innermost block out."""

    values: tuple[lldb.SBValue, ...]
    declared: tuple[lldb.SBValue, ...] = ()
    """The same variables as their declarations have them, without values."""
    is_complete: bool = False
    """Whether LLDB could be asked for the places."""

    def as_list(self) -> lldb.SBValueList:
        """Return the variables in the form in which LLDB asks for them.

        The object of a method is the first: LLDB 23 searches the list for its name, and crashes when it compares that
        with the name of another variable that a script gave.
        """
        found = lldb.SBValueList()
        values = sorted(self.values, key=lambda value: bool(value.GetName() != _OBJECT))
        for value in (*values, *(self.declared if _WANTS_DECLARED else ())):
            found.Append(value)
        return found


def variables(target: lldb.SBTarget, arch: Arch, frame: Frame, address: int) -> Variables:
    """Return the variables of a frame.

    :param address: the address by which the frame's function is looked up.
    """
    is_complete = option_parser.is_free(target.GetDebugger())
    locations = _locations(target, address) if is_complete else {}
    values = []
    known = []
    for declared in _declared(target, address):
        name = declared.GetName()
        location = locations.get(name)
        place = _place(location, arch, frame, target, address) if location is not None else None
        if place is None and name == _OBJECT:
            place = _NOWHERE
        if place is not None:
            values.append(target.CreateValueFromAddress(name, lldb.SBAddress(place, target), declared.GetType()))
            known.append(declared)
    return Variables(tuple(values), tuple(known), is_complete)


def unknown_object(target: lldb.SBTarget) -> Variables:
    """Return the one variable that a frame must have: the object of a method, which cannot be read."""
    pointer = target.GetBasicType(lldb.eBasicTypeVoid).GetPointerType()
    return Variables((target.CreateValueFromAddress(_OBJECT, lldb.SBAddress(_NOWHERE, target), pointer),))


def _declared(target: lldb.SBTarget, address: int) -> list[lldb.SBValue]:
    """Return the variables whose scope contains an address, without values; of those of one name the innermost."""
    found: dict[str, lldb.SBValue] = {}
    block = target.ResolveLoadAddress(address).GetBlock()
    while block.IsValid():
        for value in block.GetVariables(target, True, True, False):
            found.setdefault(value.GetName(), value)
        if block.IsInlined():
            break
        block = block.GetParent()
    return list(found.values())


def _locations(target: lldb.SBTarget, address: int) -> dict[str, str]:
    """Return the locations of the variables at an address, by name, as LLDB writes them."""
    result = lldb.SBCommandReturnObject()
    interpreter = target.GetDebugger().GetCommandInterpreter()
    context = lldb.SBExecutionContext(target)
    interpreter.HandleCommand(f"target modules lookup --verbose --address {address:#x}", context, result)
    found: dict[str, str] = {}
    for name, location in _VARIABLE.findall(result.GetOutput() or ""):
        found.setdefault(name, location)
    return found


def _place(location: str, arch: Arch, frame: Frame, target: lldb.SBTarget, address: int) -> int | None:
    by_base = _BY_FRAME_BASE.match(location)
    if by_base and frame.cfa is not None and _frame_base_is_cfa(target, address):
        return frame.cfa + int(by_base[1]) & ADDRESS_MASK
    by_register = _BY_REGISTER.match(location)
    base = {arch.sp: frame.sp, arch.fp: frame.fp}.get(int(by_register[1])) if by_register else None
    return None if base is None or not by_register else base + int(by_register[2]) & ADDRESS_MASK


def _frame_base_is_cfa(target: lldb.SBTarget, address: int) -> bool:
    """Return whether the frame base of a function is its CFA, which LLDB's interface does not tell.

    It is in what GCC compiles.  LLVM's compilers take FP or SP for it.
    """
    section = target.ResolveLoadAddress(address).GetModule().FindSection(".comment")
    return _is_by_gcc(bytes(section.GetSectionData().uint8s)) if section.IsValid() else False


@lru_cache(maxsize=64)
def _is_by_gcc(comment: bytes) -> bool:
    compilers = [line for line in comment.split(b"\0") if line and not line.startswith((b"Linker:", b"mold"))]
    return bool(compilers) and all(line.startswith(b"GCC:") for line in compilers)
