"""Finds the functions at an address: those that were inlined there, and the function that contains them."""

from __future__ import annotations

from collections.abc import Iterator

import lldb

from sframe_unwind.address import lookup_address
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind.walk import Frame


class Scope(NamedTuple):
    """One function at the address of a frame."""

    context: lldb.SBSymbolContext
    """The function, and the line of the call in which it waits."""
    pc: int
    """The address at which the frame continues; for a function with inlined code, the start of that code."""
    is_innermost: bool
    is_inlined: bool


class Scopes:
    """The functions at the addresses of frames, as LLDB divides its own frames (``StackFrameList``)."""

    def __init__(self, target: lldb.SBTarget) -> None:
        self._target = target
        self._known: dict[tuple[int, int], tuple[Scope, ...]] = {}

    def of(self, frame: Frame) -> tuple[Scope, ...]:
        """Return the functions, from the innermost outward; there is at least one."""
        key = frame.pc, lookup_address(frame.pc, frame.interrupted)
        if key not in self._known:
            self._known[key] = self._found(*key)
        return self._known[key]

    def _found(self, pc: int, lookup: int) -> tuple[Scope, ...]:
        # LLDB would look the function up at the pc, which is after the call and can belong to another line or function.
        found = list(functions(lldb.SBAddress(lookup, self._target)))
        scopes = []
        for number, (context, address) in enumerate(found):
            start = address.GetLoadAddress(self._target) if number else pc
            scopes.append(Scope(context, start, number == 0, number < len(found) - 1))
        return tuple(scopes)


def functions(address: lldb.SBAddress) -> Iterator[tuple[lldb.SBSymbolContext, lldb.SBAddress]]:
    """Yield each function at an address, from the innermost outward, and the address where it continues.

    The contexts have the line at the address, and the lines of the calls that were inlined.
    """
    context = address.GetSymbolContext(lldb.eSymbolContextEverything)
    while True:
        yield context, address
        inside, address = address, lldb.SBAddress()
        context = context.GetParentOfInlinedScope(inside, address)
        if not context.IsValid() or not address.IsValid():
            return
