"""Decides what a jump out of a function is: a tail call, a part of the function elsewhere, or a detour."""

from __future__ import annotations

from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.interpret.program import Program
from sframe_unwind.code.interpret.state import State

_MAX_FOLLOWED = 64
"""Maximum number of other functions that are followed from one."""


class Elsewhere:
    """The code that is entered with the frame of a function, and lies outside of it."""

    def __init__(self, program: Program, function: CodeRange) -> None:
        self._all = program
        self._image = program.image
        self._frame = program.frame
        self._function = function
        self.followed: set[CodeRange] = set()
        """The other functions that are followed."""
        self.continued: set[int] = set()
        """Those of their starts that were entered."""

    def enter(self, target: int, other: CodeRange) -> bool:
        """Note that another function is entered; return whether to follow it: too many are not followed."""
        if other not in self.followed and len(self.followed) >= _MAX_FOLLOWED:
            return False
        self.followed.add(other)
        if target == other.start:
            self.continued.add(target)
        return True

    def is_detour(self, target: int) -> bool:
        """Return whether code that no table describes leads back to the function that jumped to it.

        It has that function's frame.  Linux has such code in ``.altinstr_aux``.
        """
        if not self._image.is_code(target) or self._image.plt(target) is not None:
            return False
        sweep = self._all.sweep_at(target)
        return any(self._is_part(destination) for destination in sweep.leads_to(target))

    def _is_part(self, address: int) -> bool:
        """Return whether an address is in the code that is followed as one function, but not at its start."""
        other = self._all.ranges.find(address)
        return (
            other is not None
            and address != self._function.start
            and (other == self._function or other in self.followed)
        )

    def is_tail_call(self, target: int, other: CodeRange, state: State, is_certain: bool) -> bool:
        """Return whether a jump to another function enters it like a call, as far as is known.

        :param other: the function that contains the target.
        :param is_certain: something certain leads to the jump.
        """
        if target != other.start:
            return self._image.plt(target) is not None and self._frame.is_entry(state)
        if target in self._all.unentered:
            return self._frame.is_entry(state)
        # Clang makes conditional jumps that cannot be taken lead to after the function.
        return not is_certain or target == self._function.end or self._frame.may_be_entry(state)
