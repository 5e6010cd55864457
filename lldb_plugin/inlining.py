"""The functions that code is of: those that were inlined at an address, and the one they were inlined in."""

from __future__ import annotations

from collections.abc import Iterator
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
        found = list(functions(lldb.SBAddress(lookup, self._target)))
        scopes = []
        for number, (context, address) in enumerate(found):
            start = address.GetLoadAddress(self._target) if number else pc
            scopes.append(Scope(context, start, number == 0, number < len(found) - 1))
        return tuple(scopes)


def functions(address: lldb.SBAddress) -> Iterator[tuple[lldb.SBSymbolContext, lldb.SBAddress]]:
    """Yield each function that an address is in, from the innermost out, and the address where it goes on.

    The contexts have the line at the address, and the lines of the calls that were inlined.
    """
    context = address.GetSymbolContext(lldb.eSymbolContextEverything)
    while True:
        yield context, address
        inside, address = address, lldb.SBAddress()
        context = context.GetParentOfInlinedScope(inside, address)
        if not context.IsValid() or not address.IsValid():
            return
