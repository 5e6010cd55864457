"""Decides whether the conditions of jumps can hold in abstract states."""

from __future__ import annotations

from sframe_unwind.code.decode.instruction import Condition
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.interpret.expressions import Expressions, ReadConstant, is_count
from sframe_unwind.code.interpret.state import Frame, State
from sframe_unwind.code.interpret.values import CFA, NUMBER, SYMBOL, is_open, on_stack

BOUND = 3000
"""A pseudo register of the interpretation: the greatest value of the operand that was last compared."""


class Conditions(Expressions):
    """Evaluates the conditions of instructions.

    :param read_constant: reads literal pools.
    """

    def __init__(self, machine: Machine, frame: Frame, read_constant: ReadConstant) -> None:
        super().__init__(machine, frame, read_constant)
        self.compares_constants = False
        """Whether conditions that compare two small constants are decided; otherwise, they may hold or not."""

    def holds(self, condition: Condition | None, before: State, after: State, pc: int) -> bool:
        """Return whether a condition can hold; if so, record its consequences in the state after the instruction."""
        if condition is None:
            return True
        if not self._is_possible(condition, before, after, pc):
            return False
        bound = self._bound(condition, before, pc)
        if bound is not None:
            after.registers[BOUND] = (NUMBER, bound)
        return True

    def _is_possible(self, condition: Condition, before: State, after: State, pc: int) -> bool:
        """Return whether a condition can hold; if so, replace the stack pointer by the value that follows from it."""
        if condition.relation not in ("==", "!=") or not self._compares(condition, before, pc, equality=True):
            return True
        left, right = self.value(condition.left, before, pc), self.value(condition.right, before, pc)
        if self.compares_constants and condition.operation is not None and is_count(left) and is_count(right):
            _, operation = self.value(condition.operation, before, pc)
            is_equal = not (left[1] ^ right[1]) & (1 << self._machine.comparisons[operation]) - 1
            return is_equal == (condition.relation == "==")
        # Loops that probe the stack compare the stack pointer.  Other comparisons may be of values that were loaded
        # from the stack, where a call may have changed them.
        if before.registers[self._frame.sp] not in (left, right):
            return True
        if left[0] == right[0] and on_stack(left[0]):
            return (left[1] == right[1]) == (condition.relation == "==")
        if condition.relation == "==":
            if left[0] >= SYMBOL and is_open(left[0]) and right[0] == CFA:
                after.substitute(left[0], (CFA, right[1] - left[1]), self._reaches)
            elif right[0] >= SYMBOL and is_open(right[0]) and left[0] == CFA:
                after.substitute(right[0], (CFA, left[1] - right[1]), self._reaches)
        return True

    def _bound(self, condition: Condition, state: State, pc: int) -> int | None:
        """Return the greatest value that a condition permits for its operand; ``None``: it has no limit."""
        relation = condition.relation
        if relation not in ("<", "<=") or not self._compares(condition, state, pc, equality=False):
            return None
        base, limit = self.value(condition.right, state, pc)
        return limit - (relation == "<") if base == NUMBER and limit >= 0 else None

    def _compares(self, condition: Condition, state: State, pc: int, equality: bool) -> bool:
        if condition.operation is None:
            return True
        wanted = self._machine.comparisons if equality else self._machine.unsigned_comparisons
        base, operation = self.value(condition.operation, state, pc)
        return base == NUMBER and operation in wanted
