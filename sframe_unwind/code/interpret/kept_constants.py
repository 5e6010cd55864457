"""Executes what instructions do to the constants in the frame."""

from __future__ import annotations

from sframe_unwind.code.interpret.conditions import Conditions
from sframe_unwind.code.interpret.expressions import is_count
from sframe_unwind.code.interpret.reach import has_reach
from sframe_unwind.code.interpret.stack_order import is_above, may_overlap
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.interpret.values import CFA, NUMBER, OTHER, STACK_BASE, Value, is_displaced, on_stack

_WORD = 8
_ANY_SIZE = 1 << 64


class KeptConstants(Conditions):
    """Follows the constants in the frame."""

    def _keep(self, place: Value, size: int | None, stored: Value, state: State) -> None:
        """Note a store: forget the constants that it may change, and keep the one that it stores.

        Small constants are no addresses, and not kept.

        :param size: number of bytes; ``None``: not known, up to the end of the object at the place.
        """
        if state.constants.known:
            self._forget(place, size, state)
        base, offset = place
        is_word = base == CFA and size == _WORD and not offset % _WORD
        if self._may_be_address(stored):
            # Of the frame's own words, those at a distance from the CFA have slots, as far as there is room for them.
            if not is_word or place not in state.slots:
                self._expose(stored, state)
        elif is_word and stored[0] == NUMBER and not is_count(stored):
            state.constants = state.constants.with_constant(offset, stored[1])

    def _forget(self, place: Value, size: int | None, state: State) -> None:
        """Forget the constants that a store may change; see :meth:`_keep`."""
        constants, (base, offset) = state.constants, place
        end = _ANY_SIZE if size is None else size
        if base == CFA:
            state.constants = constants.without(lambda at: offset - _WORD < at < offset + end)
        elif on_stack(base):
            state.constants = constants.without(lambda at: may_overlap(state.tops, place, end, (CFA, at)))
        elif base == STACK_BASE or has_reach(place):
            reach = self._reaches.of(place) or ()
            is_anywhere = not reach or any(one.by_index and one.base == CFA for one in reach)
            changed = constants.without(lambda at: is_anywhere or self._reaches.overlaps(place, end, (CFA, at)))
            state.constants = changed.changed_elsewhere()
        elif base != NUMBER:
            state.constants = constants.changed_elsewhere()

    def _expose(self, address: Value, state: State) -> None:
        """Note that a callee, or memory outside of the frame, got an address in the frame."""
        for one in self._reaches.of(address) or (None,):
            if one is None or one.base == CFA:
                state.constants = state.constants.exposing(None if one is None else one.first)
            elif not is_displaced(one.base) or one.base in self._reaches.unbounded:
                state.constants = state.constants.exposing(None)

    def _forget_by_callee(self, state: State) -> None:
        """Forget the constants that a callee may change: by addresses that other code has, and in its own area."""
        state.constants = constants = state.constants.changed_elsewhere()
        if constants.known:
            base, top = sp = state.registers.get(self._frame.sp, OTHER)
            first, end = self._machine.callee_area
            if base == CFA:
                state.constants = constants.without(lambda at: at < top or first <= at - top < end)
            else:
                state.constants = constants.without(lambda at: not is_above(state.tops, (CFA, at), sp))
