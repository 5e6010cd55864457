"""The functions that one frame of a stack is shown as: those that were inlined at its address, and the one it is in."""

from __future__ import annotations

from typing import NamedTuple

import lldb

from sframe_unwind.address import lookup_address
from sframe_unwind.unwind.walk import Frame


class Scope(NamedTuple):
    """One function at the address of a frame."""

    context: lldb.SBSymbolContext
    """The function, and the line of the call that it waits for."""
    pc: int
    """Where the frame goes on; of a function that another was inlined in, where the inlined code begins."""
    is_innermost: bool
    is_inlined: bool


class Scopes:
    """The functions at the addresses of frames, as LLDB divides its own frames (``StackFrameList``)."""

    def __init__(self, target: lldb.SBTarget) -> None:
        self._target = target
        self._known: dict[tuple[int, int], tuple[Scope, ...]] = {}

    def of(self, frame: Frame) -> tuple[Scope, ...]:
        """Return the functions, from the innermost out; there is one at least."""
        key = frame.pc, lookup_address(frame.pc, frame.interrupted)
        if key not in self._known:
            self._known[key] = self._found(*key)
        return self._known[key]

    def _found(self, pc: int, lookup: int) -> tuple[Scope, ...]:
        # LLDB would look the function up at the pc, which is behind the call and can be another line's or function's.
        address = lldb.SBAddress(lookup, self._target)
        context = self._target.ResolveSymbolContextForAddress(address, lldb.eSymbolContextEverything)
        found = [(context, pc)]
        while True:
            outer = lldb.SBAddress()
            context = context.GetParentOfInlinedScope(address, outer)
            start = outer.GetLoadAddress(self._target)
            if not context.IsValid() or start == lldb.LLDB_INVALID_ADDRESS:
                break
            found.append((context, start))
            address = outer
        last = len(found) - 1
        return tuple(Scope(*one, number == 0, number < last) for number, one in enumerate(found))
