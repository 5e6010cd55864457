"""Decides whether a frame's caller can be on another stack, at lower addresses.

A function that starts a fiber, or that continues on a new piece of a split stack (``__morestack`` of libgcc), changes
SP to another stack, which can be at higher addresses than its caller's.
"""

from __future__ import annotations

from sframe_unwind.address import PAGE_SIZE
from sframe_unwind.arch import Arch
from sframe_unwind.memory import ReadMemory
from sframe_unwind.unwind.after_call import follows_call
from sframe_unwind.unwind.step import Caller


class OtherStacks:
    """The stacks that one walk has gone to.

    :param read: reads the memory of the process.
    """

    def __init__(self, arch: Arch, read: ReadMemory) -> None:
        self._arch = arch
        self._read = read
        self._reached: set[int] = set()

    def accepts(self, sp: int, caller: Caller) -> bool:
        """Return whether a caller at a lower address than its callee is plausible.

        Its pc has to be a return address.  A distance of less than a page counts as damage, since no stack is that
        small.  No walk comes to the same place of a stack twice, so that a walk of damaged memory ends.

        :param sp: SP of the callee.
        """
        if sp - caller.sp < PAGE_SIZE or caller.sp in self._reached:
            return False
        self._reached.add(caller.sp)
        return follows_call(self._arch, caller.pc, self._read)
