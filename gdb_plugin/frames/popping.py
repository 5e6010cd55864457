"""Detects that GDB/MI's ``-exec-return`` has popped a frame whose caller has unknown registers.

A plugin cannot prevent this: the command runs no hook, calls no Python before it writes registers, and
``gdb.MICommand`` refuses its name because it is GDB's own.  It is detected afterwards: GDB asks for an innermost frame
that was the caller of another frame, although the program has not run.
"""

from __future__ import annotations

from collections.abc import Iterable

import gdb

_LEVELS = 256
"""Frames further out are not kept: a recursion of 100,000 frames must not fill the memory."""


class Popping:
    """The frames of GDB's present chain whose callers have unknown registers."""

    def __init__(self) -> None:
        self.unknown: dict[int, tuple[int, Iterable[int]]] = {}
        """Maps the SP of a caller with unknown registers to its pc and the DWARF numbers of these registers."""

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
        """Begin a new chain; return the registers of its innermost frame that were unknown in the chain before.

        The innermost frame was a caller in that chain if both its SP and its pc are those of the caller.  SP alone does
        not show that: on machines whose calls leave the return address in a register, a function that was just entered
        has the SP of its caller.

        :param pc: pc of the innermost frame.
        :param sp: SP of the innermost frame.
        :returns: DWARF numbers of the registers.
        """
        was_at, numbers = self.unknown.get(sp, (None, ()))
        numbers = numbers if was_at == pc else ()
        self.unknown = {}
        # Replaying a recording moves the program although it does not run.
        return () if gdb.current_recording() is not None else numbers

    def stopped(self, sp: int) -> None:
        """Forget the callers whose frames the program has left when it stops.

        :param sp: SP of the innermost frame at the stop.
        """
        self.unknown = {place: known for place, known in self.unknown.items() if place > sp}
