"""Notices that GDB popped a frame whose caller has unknown registers.

GDB/MI's ``-exec-return`` pops frames as ``return`` does, but runs no hook, calls no Python before it writes registers,
and cannot be replaced: ``gdb.MICommand`` refuses the names of GDB's own commands.  So it cannot be refused.  But GDB
then asks for the new innermost frame, which was the caller of another frame before, although the program has not run.
"""

from __future__ import annotations

from collections.abc import Iterable

import gdb

_LEVELS = 256
"""Frames further out are not kept: a recursion of 100,000 frames must not fill the memory."""


class Popping:
    """The frames of the present chain that have unknown registers."""

    def __init__(self) -> None:
        self.unknown: dict[int, tuple[int, Iterable[int]]] = {}
        """By the SP of a caller with unknown registers: its pc, and the DWARF numbers of these registers."""

    def note(self, level: int, pc: int, sp: int, numbers: Iterable[int]) -> None:
        """Remember the caller of a frame.

        :param level: level of the frame, not of its caller.
        :param pc: pc of the caller.
        :param sp: SP of the caller.
        :param numbers: DWARF numbers of the caller's registers that are unknown.
        """
        if level < _LEVELS:
            self.unknown[sp] = pc, numbers

    def begin(self, pc: int, sp: int) -> Iterable[int]:
        """Begin a new chain; return the registers of the innermost frame that were unknown before.

        A function can have the SP of its caller: one that was just entered, on machines whose calls leave the return
        address in a register.  So SP alone does not show that a frame was a caller.

        :param pc: pc of the innermost frame.
        :param sp: SP of the innermost frame.
        """
        was_at, numbers = self.unknown.get(sp, (None, ()))
        numbers = numbers if was_at == pc else ()
        self.unknown = {}
        return () if gdb.current_recording() is not None else numbers  # replaying moves the program without running it

    def stopped(self, sp: int) -> None:
        """Forget the frames that the program left before it stopped with an innermost frame at ``sp``."""
        self.unknown = {place: known for place, known in self.unknown.items() if place > sp}
