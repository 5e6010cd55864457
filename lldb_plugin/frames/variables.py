"""The variables of a frame for which LLDB has no registers: values at the addresses that SFrame's registers give.

A variable's place is known if the debug information locates it by the frame base, SP or FP; variables in other
registers are not shown.  LLDB's interface has a variable's name and type without a frame, but its location only as
text.
"""

from __future__ import annotations

import re
from functools import lru_cache

import lldb

from lldb_plugin.frames.option_parser import OptionParser
from lldb_plugin.process.inlining import Scope
from lldb_plugin.version import WANTS_DECLARED_VARIABLES
from sframe_unwind.address import ADDRESS_MASK, lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind.walk import Frame

_VARIABLE = re.compile(
    r'^ *Variable: id = \S+, name = "(.*?)", .*, location = (?:\[.*?\) -> )?(.*?), decl = (?:.*?:(\d+))?', re.M
)
_BY_FRAME_BASE = re.compile(r"DW_OP_fbreg ([-+]?\d+)$")
_BY_REGISTER = re.compile(r"DW_OP_breg(\d+) \w+([-+]\d+)$")
_OBJECT = "this"
"""The object of a C++ method.  In an expression, LLDB 22 and 23 assume that it has a value, and crash if it has
none."""
_NOWHERE = 1 << 63
"""An address that no process has mapped, on any of the machines: reading there fails."""


class Variables(NamedTuple):
    """The arguments and locals of a frame, as far as their places are known, from the innermost block outward."""

    values: tuple[lldb.SBValue, ...]
    declared: tuple[lldb.SBValue, ...] = ()
    """The same variables according to their declarations, without values."""
    is_complete: bool = False
    """Whether LLDB could be asked for the places."""

    def as_list(self) -> lldb.SBValueList:
        """Return the variables in the form in which LLDB asks for them.

        The object of a method comes first: LLDB 23 searches the list for its name, and crashes when it compares that
        name with the name of another variable of a script.
        """
        found = lldb.SBValueList()
        values = sorted(self.values, key=lambda value: bool(value.GetName() != _OBJECT))
        for value in (*values, *(self.declared if WANTS_DECLARED_VARIABLES else ())):
            found.Append(value)
        return found


def variables(target: lldb.SBTarget, arch: Arch, parser: OptionParser, frame: Frame, scope: Scope) -> Variables:
    """Return the variables of one of the functions that a frame is in."""
    address = lookup_address(frame.pc, frame.interrupted)
    is_complete = parser.is_free(target.GetDebugger())
    locations = _locations(target, address) if is_complete else {}
    values = []
    known = []
    for declared in _declared(target, scope.context.GetBlock()):
        name = declared.GetName()
        places = locations.get((name, declared.GetDeclaration().GetLine()), [])
        # A function that was inlined into itself has each of its variables twice.
        location = places[0] if places and (scope.is_innermost or len(set(places)) == 1) else None
        place = _place(location, arch, frame, target, address) if location is not None else None
        if place is None and name == _OBJECT:
            place = _NOWHERE
        if place is not None:
            values.append(target.CreateValueFromAddress(name, lldb.SBAddress(place, target), declared.GetType()))
            known.append(declared)
    return Variables(tuple(values), tuple(known), is_complete)


def unknown_object(target: lldb.SBTarget) -> Variables:
    """Return the variable that a frame must have: the object of a method, which cannot be read."""
    pointer = target.GetBasicType(lldb.eBasicTypeVoid).GetPointerType()
    return Variables((target.CreateValueFromAddress(_OBJECT, lldb.SBAddress(_NOWHERE, target), pointer),))


def _declared(target: lldb.SBTarget, block: lldb.SBBlock) -> list[lldb.SBValue]:
    """Return the variables of a block and of those around it in the same function, without values.

    Of several variables with one name, only the innermost is returned.
    """
    found: dict[str, lldb.SBValue] = {}
    while block.IsValid():
        for value in block.GetVariables(target, True, True, False):
            found.setdefault(value.GetName(), value)
        if block.IsInlined():
            break
        block = block.GetParent()
    return list(found.values())


def _locations(target: lldb.SBTarget, address: int) -> dict[tuple[str, int], list[str]]:
    """Return the locations of the variables at an address in LLDB's text, the innermost first.

    They are found by name and line of the declaration; 0: LLDB has no line.
    """
    result = lldb.SBCommandReturnObject()
    interpreter = target.GetDebugger().GetCommandInterpreter()
    context = lldb.SBExecutionContext(target)
    interpreter.HandleCommand(f"target modules lookup --verbose --address {address:#x}", context, result)
    found: dict[tuple[str, int], list[str]] = {}
    for name, location, line in _VARIABLE.findall(result.GetOutput() or ""):
        found.setdefault((name, int(line or 0)), []).append(location)
    return found


def _place(location: str, arch: Arch, frame: Frame, target: lldb.SBTarget, address: int) -> int | None:
    by_base = _BY_FRAME_BASE.match(location)
    if by_base and frame.cfa is not None and _frame_base_is_cfa(target, address):
        return frame.cfa + int(by_base[1]) & ADDRESS_MASK
    by_register = _BY_REGISTER.match(location)
    base = {arch.sp: frame.sp, arch.fp: frame.fp}.get(int(by_register[1])) if by_register else None
    return None if base is None or not by_register else base + int(by_register[2]) & ADDRESS_MASK


def _frame_base_is_cfa(target: lldb.SBTarget, address: int) -> bool:
    """Return whether the frame base of a function is its CFA; LLDB's interface does not tell this.

    It is in code that GCC compiles.  LLVM's compilers use FP or SP.
    """
    section = target.ResolveLoadAddress(address).GetModule().FindSection(".comment")
    return _is_by_gcc(bytes(section.GetSectionData().uint8s)) if section.IsValid() else False


@lru_cache(maxsize=64)
def _is_by_gcc(comment: bytes) -> bool:
    compilers = [line for line in comment.split(b"\0") if line and not line.startswith((b"Linker:", b"mold"))]
    return bool(compilers) and all(line.startswith(b"GCC:") for line in compilers)
