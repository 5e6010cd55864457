"""Finds the rule that holds in an abstract state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sframe_unwind import unwind_rule
from sframe_unwind.code.decode.instruction import HIGH
from sframe_unwind.code.interpret.state import Frame, State
from sframe_unwind.code.interpret.values import CFA, ENTRY, SIGNED, SIGNED_BASE, SIGNED_BY_B, Value, on_stack
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import UNDEFINED, RegisterRule, UnwindRule, saved_at_cfa


class Candidate(NamedTuple):
    """A rule that a state suggests."""

    rule: UnwindRule
    b_key: bool = False
    """The return address is signed with the B key."""
    added: int = 0
    """The CFA is a word in memory plus this constant in bytes."""


def candidate(frame: Frame, state: State, for_cfi: bool = False) -> Candidate | None:
    """Return the simplest rule that a state suggests; ``None``: the place of some value is not known.

    The judge has to prove the rule, because a store to another slot may have overwritten one that the state has.

    :param for_cfi: rules may have what only CFI can express.
    """
    cfa, added = next(_cfas(frame, state, for_cfi), (None, 0))
    if cfa is None:
        return None
    ra, value = _return_address(frame, state)
    fp = _place(frame, state, frame.fp, frame.entry_fp)
    if fp is _NOWHERE and for_cfi:
        fp = UNDEFINED
    if ra is _NOWHERE or fp is _NOWHERE:
        return None
    rule = UnwindRule(cfa, _usual(ra), _usual(fp), value[0] == SIGNED_BASE)
    return Candidate(rule, value == SIGNED_BY_B, added)


_NOWHERE = RegisterRule(-4, 0, False)
"""A value whose place is not known."""
_SAME = RegisterRule(-5, 0, False)
"""A value that its register still has."""


def _usual(place: RegisterRule) -> RegisterRule | None:
    return None if place is _SAME else place


def _cfas(frame: Frame, state: State, for_cfi: bool) -> Iterator[tuple[RegisterRule, int]]:
    """Yield the ways to compute the CFA, the usual ones first, and what is added to a word in memory.

    On a machine whose calls and saves push, the stack pointer moves often, so a frame pointer comes first.  On other
    machines, a function moves the stack pointer once.  Other registers come last: while a callee runs, most of them are
    not known.
    """
    registers = state.registers
    pushes = frame.ra is None
    first = (frame.fp, frame.sp) if pushes else (frame.sp, frame.fp)
    for number in first:
        base, offset = registers[number]
        if base == CFA:
            yield RegisterRule(number, -offset, False), 0
    # Code that aligns its stack saves the CFA in its frame, or the stack pointer at the entry.
    for saved in ((CFA, 0), *((frame.entry_sp,) if for_cfi else ())):
        for slot, value in state.slots.items():
            if value == saved:
                for number in (frame.fp, frame.sp):
                    base, offset = registers[number]
                    if base == slot[0]:
                        yield RegisterRule(number, slot[1] - offset, True), -saved[1]
    for number, (base, offset) in _in_tables(state):
        if base == CFA and number not in first:
            yield RegisterRule(number, -offset, False), 0


def _return_address(frame: Frame, state: State) -> tuple[RegisterRule, Value]:
    """Return where the return address is, and the value there: it may be signed."""
    for value in (frame.return_address, SIGNED, SIGNED_BY_B):
        place = _place(frame, state, frame.ra, value)
        if place is not _NOWHERE:
            return place, value
    return _NOWHERE, frame.return_address


def _place(frame: Frame, state: State, own: int | None, wanted: Value) -> RegisterRule:
    """Return where a value is.

    Compilers describe a value by its slot as soon as it is saved, although its register may keep it for a while.  With
    the same choice, rows change less often.  Slots below the stack pointer only count if no register has the value: a
    signal may overwrite them, or the child of ``vfork``, whose caller keeps the return address in a register.

    :param own: the register that has it at the entry; ``None``: it is in memory.
    """
    slots = [slot for slot, value in state.slots.items() if value == wanted]
    by_cfa = [offset for base, offset in slots if base == CFA]
    base, top = state.registers[frame.sp]
    if by_cfa and (base != CFA or max(by_cfa) >= top):
        return saved_at_cfa(max(by_cfa))
    if own is not None and state.registers[own] == wanted:
        return _SAME
    in_register = next((number for number, value in _in_tables(state) if value == wanted), None)
    if by_cfa and in_register is None:
        return saved_at_cfa(max(by_cfa))
    for base, offset in slots if not by_cfa else ():
        for number, (of, distance) in _in_tables(state):
            if of == base and on_stack(base):
                return RegisterRule(number, offset - distance, True)
    return _NOWHERE if in_register is None else RegisterRule(in_register, 0, False)


def _in_tables(state: State) -> Iterator[tuple[int, Value]]:
    """Yield the registers that tables can name, and their values: not upper halves, nor parts of the condition code."""
    return ((number, value) for number, value in state.registers.items() if number < HIGH)


def others(frame: Frame, state: State, registers: Iterable[int]) -> tuple[tuple[int, RegisterRule], ...]:
    """Return the places of further registers that change; one that is found nowhere is undefined."""
    places = ((number, _place(frame, state, number, (ENTRY + number, 0))) for number in registers)
    return tuple((number, UNDEFINED if place is _NOWHERE else place) for number, place in places if place is not _SAME)


def bases_of(rule: UnwindRule) -> frozenset[int]:
    """Return the registers that a rule uses."""
    places = (rule.cfa, rule.ra, rule.fp)
    return frozenset(place.base for place in places if place is not None and place.base != unwind_rule.CFA)
