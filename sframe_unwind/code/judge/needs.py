"""The values that registers and slots must have for a usual rule to be proved: quicker to compare than to judge it."""

from __future__ import annotations

from sframe_unwind import unwind_rule
from sframe_unwind.code.interpret.state import Frame, State
from sframe_unwind.code.interpret.values import CFA, SIGNED, Slot, Value
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import UnwindRule


class Needs(NamedTuple):
    """Values that, in a state, prove some rules; without them, the rules may still be proved in another way."""

    registers: tuple[tuple[int, Value], ...]
    slots: tuple[tuple[Slot, Value], ...]

    def are_met(self, state: State) -> bool:
        """Return whether a state has all the values."""
        registers, slots = state.registers, state.slots
        for number, value in self.registers:
            if registers.get(number) != value:
                return False
        for slot, value in self.slots:  # noqa: SIM110  # in the innermost loop
            if slots.get(slot) != value:
                return False
        return True

    def plus(self, other: Needs) -> Needs:
        """Return the values that prove these rules and others."""
        if other == self:
            return self
        return Needs(
            tuple(dict.fromkeys((*self.registers, *other.registers))), tuple(dict.fromkeys((*self.slots, *other.slots)))
        )


NO_NEEDS = Needs((), ())


def needs_of(rule: UnwindRule, frame: Frame) -> Needs | None:
    """Return the values that prove a rule whose CFA is in a register, with all it saves at a distance from the CFA.

    :return: ``None``: it is no such rule.
    """
    cfa = rule.cfa
    if cfa is None or cfa.in_memory or cfa.base < 0:
        return None
    registers, slots = [(cfa.base, (CFA, -cfa.offset))], []
    ra = SIGNED if rule.ra_signed else frame.return_address
    for place, register, value in ((rule.ra, frame.ra, ra), (rule.fp, frame.fp, frame.entry_fp)):
        if place is None:
            if register is None:
                return None
            registers.append((register, value))
        elif place.base == unwind_rule.CFA and place.in_memory:
            slots.append(((CFA, place.offset), value))
        else:
            return None
    return Needs(tuple(registers), tuple(slots))
