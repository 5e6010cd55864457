"""Tracks calls and returns by the instructions, as a reference that does not depend on unwind data."""

from __future__ import annotations

import struct
from typing import NamedTuple

import gdb

from tests.abis.inside.chains import SP, register


class Machine(NamedTuple):
    """The way in which calls work on a machine."""

    link: str
    """The register with the return address; empty: the call pushes it."""
    calls: range
    """Lengths in bytes of the instructions that call."""
    cfa: int
    """Distance of a function's CFA above SP at its entry, in bytes."""
    back: int
    """Distance of the caller's SP above the CFA, in bytes."""


MACHINES = {
    "i386:x86-64": Machine("", range(2, 9), 8, 8),
    "aarch64": Machine("x30", range(4, 5), 0, 0),
    "s390:64-bit": Machine("r14", range(2, 7), 160, 0),
}


class Call(NamedTuple):
    """A frame: its CFA, and the pc and the SP with which its caller continues."""

    back: int
    cfa: int
    sp: int


class Account:
    """The frames from the innermost to the one in which the account began.

    An instruction is a call if the return address is the address after it, and the pc is another one.  The frame ends
    when pc and SP have the values that belong to the return address and to SP at the entry.
    """

    def __init__(self) -> None:
        name = gdb.selected_inferior().architecture().name()
        self._machine, self._sp_name = MACHINES[name], SP[name]
        self.pc, self._sp = self._registers()
        self._calls = [self._call(self._return_address())]

    def follow(self) -> bool:
        """Record one instruction; return whether the outermost frame still exists."""
        before, sp_before = self.pc, self._sp
        self.pc, self._sp = self._registers()
        while self._calls and (self.pc, self._sp) == (self._calls[-1].back, self._calls[-1].sp):
            self._calls.pop()
        if self._sp == sp_before - self._machine.back:
            back = self._return_address()
            if back - before in self._machine.calls and self.pc != back:
                self._calls.append(self._call(back))
        return bool(self._calls)

    def frames(self) -> list[tuple[int, int]]:
        """Return pc and CFA of each frame from the innermost outward."""
        frames, pc = [], self.pc
        for call in reversed(self._calls):
            frames.append((pc, call.cfa))
            pc = call.back
        return frames

    def _call(self, back: int) -> Call:
        return Call(back, self._sp + self._machine.cfa, self._sp + self._machine.back)

    def _registers(self) -> tuple[int, int]:
        frame = gdb.newest_frame()
        return frame.pc(), register(frame, self._sp_name) or 0

    def _return_address(self) -> int:
        """Return the return address of the function that has just been called."""
        if self._machine.link:
            return register(gdb.newest_frame(), self._machine.link) or 0
        (word,) = struct.unpack("<Q", bytes(gdb.selected_inferior().read_memory(self._sp, 8)))
        return int(word)
