"""Decides whether a jump out of a function is a tail call, or leads to a part of the function or to a detour."""

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
        """The starts of those other functions that were entered at their start."""

    def enter(self, target: int, other: CodeRange) -> bool:
        """Record that another function is entered; return whether to follow it, which is done for a limited number."""
        if other not in self.followed and len(self.followed) >= _MAX_FOLLOWED:
            return False
        self.followed.add(other)
        if target == other.start:
            self.continued.add(target)
        return True

    def is_detour(self, target: int) -> bool:
        """Return whether the code at an address is in no table, and leads back to the function that jumped there.

        Such code has the frame of that function.  Linux has it in ``.altinstr_aux``.
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
        """Return whether a jump to another function enters that function like a call, as far as is known.

        :param other: the function that contains the target.
        :param is_certain: whether the jump is certainly code, not data.
        """
        if target != other.start:
            return self._image.plt(target) is not None and self._frame.is_entry(state)
        if self._has_entry_mark(target):
            return True
        if target in self._all.unentered:
            return self._frame.is_entry(state)
        # For conditional jumps that cannot be taken, Clang makes the address after the function the target.
        return not is_certain or target == self._function.end or self._frame.may_be_entry(state)

    def _has_entry_mark(self, target: int) -> bool:
        """Return whether a function begins with an instruction that only the entry of a function has."""
        marks = self._all.machine.entry_marks
        sweep = self._all.sweep_at(target) if marks else None
        return sweep is not None and sweep.bytes_at(target, sweep.instruction(target).size) in marks
