"""The ways in which a function is left."""

from __future__ import annotations

from sframe_unwind.code.interpret.state import Frame, State
from sframe_unwind.code.interpret.values import OTHER, REPLACED_BASE, UNKNOWN, Value, is_open


class Ends:
    """Collects the states in which a function is left; see :class:`sframe_unwind.code.interpret.run.Run`."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self.returns = self.changes_fp = self.replaces_return = False
        self.stack_pointers_at_end: set[Value] = set()
        self.stack_pointers_at_return: set[Value] = set()
        self.has_return = False
        self._as_entered = True
        self._restored: set[int] | None = None
        self._kept_elsewhere: set[int] | None = None
        self.returns_to: set[Value] = set()
        self.loses_fp = False
        """Whether a callee may return with another frame pointer."""

    @property
    def as_entered(self) -> bool:
        """Whether the function is left without a frame on all paths."""
        return bool(self.stack_pointers_at_end) and self._as_entered

    def restored(self, is_exposed: bool) -> frozenset[int]:
        """Return the followed registers that have their values at the entry wherever the function is left.

        A path that leaves for another frame, as by `longjmp`, does not return to the caller.

        :param is_exposed: whether the function has stored an address in its frame outside of it: the other frame may
            then be its own.
        """
        left = [self._restored, self._kept_elsewhere] if is_exposed else [self._restored]
        return frozenset(self._frame.also).intersection(*(kept for kept in left if kept is not None))

    def leave(self, state: State, is_certain: bool, to: Value = UNKNOWN) -> None:
        """Record the state in which the function is left.

        :param is_certain: whether the code is certain; the stack pointer of guessed code is not recorded.
        :param to: the target of the jump.
        """
        self.returns = True
        if is_certain:
            sp = state.registers[self._frame.sp]
            self.stack_pointers_at_end.add(sp)
            self._as_entered &= self._frame.is_entry(state)
            kept = self._frame.kept(state)
            if to == OTHER and state.tops.get(sp[0], UNKNOWN) == OTHER:
                self._kept_elsewhere = kept if self._kept_elsewhere is None else self._kept_elsewhere & kept
            else:
                self._restored = kept if self._restored is None else self._restored & kept

    def return_to(self, target: Value, has_replaced: bool) -> None:
        """Record the address to which a return instruction returns, as an abstract value.

        :param has_replaced: a value was stored over the return address.
        """
        self.returns_to.add(target)
        self.replaces_return |= has_replaced and (target[0] == REPLACED_BASE or is_open(target[0]))

    def pass_to_caller(self, state: State, after: State) -> None:
        """Record with which registers the caller continues.

        :param state: the state before the return.
        :param after: the state after it.
        """
        self.stack_pointers_at_return.add(after.registers[self._frame.sp])
        value = state.registers[self._frame.fp]
        self.changes_fp |= value != self._frame.entry_fp and (self.loses_fp or not is_open(value[0]))
