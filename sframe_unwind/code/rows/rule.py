"""Finds the rule that holds in an abstract state."""

from __future__ import annotations

from collections.abc import Iterator

from sframe_unwind import unwind_rule
from sframe_unwind.code.interpret.state import Frame, State
from sframe_unwind.code.interpret.values import CFA, SIGNED, Value, on_stack
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa


def candidate(frame: Frame, state: State) -> UnwindRule | None:
    """Return the simplest rule that a state suggests; ``None``: it does not tell where all values are.

    The judge has to prove it: a slot that the state knows may lie where another one may be, too.
    """
    cfa = next(_cfas(frame, state), None)
    if cfa is None:
        return None
    ra, is_signed = _return_address(frame, state)
    fp = _place(frame, state, frame.fp, frame.entry_fp)
    if ra is _NOWHERE or fp is _NOWHERE:
        return None
    return UnwindRule(cfa, _usual(ra), _usual(fp), is_signed)


_NOWHERE = RegisterRule(-4, 0, False)
"""A value whose place is not known."""
_SAME = RegisterRule(-5, 0, False)
"""A value that its register still has."""


def _usual(place: RegisterRule) -> RegisterRule | None:
    return None if place is _SAME else place


def _cfas(frame: Frame, state: State) -> Iterator[RegisterRule]:
    """Yield the ways to compute the CFA, the usual ones first.

    Where calls and saves push, the stack pointer moves often, and a frame pointer that is set up does not.  On other
    machines, a function moves it once.
    """
    registers = state.registers
    pushes = frame.ra is None
    usual = (frame.fp, frame.sp) if pushes else (frame.sp, frame.fp)
    for number in usual:
        base, offset = registers[number]
        if base == CFA:
            yield RegisterRule(number, -offset, False)
    # Code that aligns its stack saves the CFA in its frame.  Another register may still have it, but calls change that.
    for slot, value in state.slots.items():
        if value == (CFA, 0):
            for number in (frame.fp, frame.sp):
                base, offset = registers[number]
                if base == slot[0]:
                    yield RegisterRule(number, slot[1] - offset, True)
    for number, (base, offset) in registers.items():
        if base == CFA and number not in usual:
            yield RegisterRule(number, -offset, False)


def _return_address(frame: Frame, state: State) -> tuple[RegisterRule, bool]:
    """Return where the return address is, and whether it is signed there."""
    for value, is_signed in ((frame.return_address, False), (SIGNED, True)):
        place = _place(frame, state, frame.ra, value)
        if place is not _NOWHERE:
            return place, is_signed
    return _NOWHERE, False


def _place(frame: Frame, state: State, own: int | None, wanted: Value) -> RegisterRule:
    """Return where a value is.

    Compilers describe a value by its slot as soon as it is saved, though its register may keep it for a while.  Rows
    that do the same change less often.  Below the stack pointer, a signal may overwrite a slot.

    :param own: the register that has it at the entry; ``None``: it is in memory.
    """
    slots = [slot for slot, value in state.slots.items() if value == wanted]
    by_cfa = [offset for base, offset in slots if base == CFA]
    base, top = state.registers[frame.sp]
    if by_cfa and (base != CFA or max(by_cfa) >= top):
        return saved_at_cfa(max(by_cfa))
    if own is not None and state.registers[own] == wanted:
        return _SAME
    if by_cfa:
        return saved_at_cfa(max(by_cfa))
    for base, offset in slots:
        for number, (of, distance) in state.registers.items():
            if of == base and on_stack(base):
                return RegisterRule(number, offset - distance, True)
    for number, value in state.registers.items():
        if value == wanted:
            return RegisterRule(number, 0, False)
    return _NOWHERE


def bases_of(rule: UnwindRule) -> frozenset[int]:
    """Return the registers that a rule uses."""
    places = (rule.cfa, rule.ra, rule.fp)
    return frozenset(place.base for place in places if place is not None and place.base != unwind_rule.CFA)
