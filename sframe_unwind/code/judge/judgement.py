"""Judges a rule in an abstract state: each of its values is proved, unknown or wrong."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Union

from sframe_unwind import unwind_rule
from sframe_unwind.cfi.row import NO_SCALES, Scales
from sframe_unwind.code.interpret.run import Run
from sframe_unwind.code.interpret.state import Frame, State
from sframe_unwind.code.interpret.values import (
    CFA,
    CLOBBERED,
    OTHER,
    SIGNED,
    SIGNED_BASE,
    STACK_BASE,
    UNKNOWN,
    UNKNOWN_BASE,
    Value,
    is_displaced,
    is_lost,
    is_open,
    on_stack,
    plus,
    scaled,
)
from sframe_unwind.code.judge.needs import Needs, needs_of
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import COMPUTED, UNDEFINED, RegisterRule, UnwindRule


class Judgement(IntEnum):
    """The code's judgement of a rule; of several judgements, the greatest counts."""

    PROVED = 0
    UNKNOWN = 1
    WRONG = 2


class Judgements(NamedTuple):
    """The judgements of a rule's values."""

    cfa: Judgement
    ra: Judgement
    fp: Judgement
    why: str = ""
    """Why a value is unknown; empty: all are known."""
    origin: int | None = None
    """Address of the instruction from which on it is unknown; ``None``: not wanted, or not known."""
    instruction: str = ""
    """That instruction, in objdump's notation."""

    @property
    def worst(self) -> Judgement:
        """The judgement of the rule as a whole."""
        return max(self.cfa, self.ra, self.fp)

    def joined(self, other: Judgements) -> Judgements:
        """Return the worst of two judgements for each value."""
        reason = (self if self.why else other)[3:]
        return Judgements(max(self.cfa, other.cfa), max(self.ra, other.ra), max(self.fp, other.fp), *reason)


PROVED = Judgements(Judgement.PROVED, Judgement.PROVED, Judgement.PROVED)


def not_known(why: str) -> Judgements:
    """Return the judgement that all values of a rule are unknown.

    :param why: the reason.
    """
    return Judgements(Judgement.UNKNOWN, Judgement.UNKNOWN, Judgement.UNKNOWN, why)


_OUTERMOST = not_known("that the stack ends does not show in the code")
_NOT_CERTAIN = not_known("only a jump whose targets are not known for certain, or a trap's handler, leads here")
_GIVEN_UP = not_known("the function takes too long to interpret")
_OF_NEXT_FRAME = not_known("the rule may be of the frame that the function goes to")
NOT_BY_ABI = not_known("the function leaves its caller with less on the stack than it is entered with by the ABI")
NOT_REACHED = not_known("nothing that is known leads here")
CFA_NOT_KNOWN = "where the CFA is, is not known"
_REPLACED = "the function may return to what it stores over its return address"
_NO_RULE = "no register rule holds what the frame pointer is computed by"


class SumRule(NamedTuple):
    """A rule whose CFA is a word in memory plus a constant."""

    rule: UnwindRule
    """The rule with that word as its CFA."""
    added: int
    """The constant in bytes."""


class ScaledRule(NamedTuple):
    """A rule with places that depend on the length of scalable vectors."""

    rule: UnwindRule
    """The rule without the part that depends on the length."""
    scales: Scales
    """The part that depends on the length."""


RowRule = Union[UnwindRule, SumRule, ScaledRule, str]
"""The rule of a row, or the reason why it cannot be expressed as one."""


def plain(rule: RowRule) -> UnwindRule | None:
    """Return the rule of a row without vector lengths, and without the constant of a :class:`SumRule`."""
    if isinstance(rule, (SumRule, ScaledRule)):
        return rule.rule
    return rule if isinstance(rule, UnwindRule) else None


def _has(state: State, value: Value) -> bool:
    """Return whether some register or slot is known to have a value."""
    return value in state.registers.values() or value in state.slots.values()


class Judge:
    """Judges the rules of one machine."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._cfa: Value = (CFA, 0)
        self._needs: dict[RowRule, Needs | None] = {}

    def needs(self, rule: RowRule) -> Needs | None:
        """Return the values with which a state proves a rule; ``None``: the rule has to be judged."""
        known = self._needs
        if rule not in known:
            known[rule] = needs_of(rule, self._frame) if isinstance(rule, UnwindRule) else None
        return known[rule]

    def judge(self, rule: RowRule, state: State) -> Judgements:
        """Judge a rule for the instruction before which the machine is in a state."""
        added, scales = 0, NO_SCALES
        if isinstance(rule, SumRule):
            rule, added = rule
        elif isinstance(rule, ScaledRule):
            rule, scales = rule
        if isinstance(rule, str):
            return not_known(rule)
        if rule.cfa is None:
            return _OUTERMOST
        cfa = self._value(rule.cfa, state, self._cfa, scales.cfa)
        if added:
            cfa = plus(cfa, added)
        judged = self._compare(cfa, self._cfa)
        # A wrong CFA is one error, not three: return address and frame pointer are accepted by either CFA.
        cfas = (self._cfa,) if cfa == self._cfa else (self._cfa, cfa)
        ra = self._return_address(rule, state, cfas, scales.ra)
        fp = self._frame_pointer(rule, state, cfas, scales.fp)
        return Judgements(judged, ra, fp, self._why(judged, ra, rule)) if judged or ra or fp else PROVED

    @staticmethod
    def _why(cfa: Judgement, ra: Judgement, rule: UnwindRule) -> str:
        """Return why a value is unknown; empty: all are known."""
        if cfa is Judgement.UNKNOWN:
            return CFA_NOT_KNOWN
        if ra is Judgement.UNKNOWN:
            return "where the return address is, is not known"
        return _NO_RULE if rule.fp in (UNDEFINED, COMPUTED) else "where the caller's frame pointer is, is not known"

    def judge_in(self, run: Run, block: int, rule: RowRule, state: State) -> Judgements:
        """Judge a rule for an instruction of an interpreted function; a rule that may be right is never wrong.

        :param block: start of the block with the instruction.
        """
        judged = self.judge(rule, state)
        if judged is PROVED or judged.worst is not Judgement.WRONG:
            return judged
        if block in run.guessed or not run.complete:
            return _NOT_CERTAIN if run.complete else _GIVEN_UP
        if any(is_displaced(base) or (is_lost(base) and not run.has_return) for base, _ in run.stack_pointers_at_end):
            judged = self._judged_before_switch(judged, rule, state)
            # The frame pointer in such a state is not that of the frame which the rule leaves, either.
            if judged.fp is Judgement.WRONG:
                judged = judged._replace(fp=Judgement.UNKNOWN, why=judged.why or _OF_NEXT_FRAME.why)
            # The return address is at its place relative to the CFA, which may also be that of the next frame.
            if judged.cfa is Judgement.UNKNOWN and judged.ra is Judgement.WRONG:
                judged = judged._replace(ra=Judgement.UNKNOWN)
        if run.replaces_return:
            # Code that ends with __builtin_eh_return writes its target where its return address was.
            judged = judged._replace(ra=min(judged.ra, Judgement.UNKNOWN), why=_REPLACED)
        return judged

    def clobbered(self, rule: UnwindRule, state: State) -> dict[str, int]:
        """Return the values of a rule that need a register that calls need not preserve, and that register.

        :return: by ``cfa``, ``ra`` and ``fp``.
        """
        if rule.cfa is None:
            return {}
        places = {
            "cfa": rule.cfa,
            "ra": rule.ra,
            "fp": RegisterRule(self._frame.fp, 0, False) if rule.fp is None else rule.fp,
        }
        return {
            what: place.base
            for what, place in places.items()
            if place is not None and state.registers.get(place.base, OTHER) == CLOBBERED
        }

    def _judged_before_switch(self, judged: Judgements, rule: RowRule, state: State) -> Judgements:
        """Return the remaining judgement in a function that continues in another frame than its caller's.

        longjmp and libffi's calls end with a stack pointer that does not derive from the one at their entry, and their
        rules compute the CFA from the new stack pointer, or from its source.
        """
        known = plain(rule)
        if judged.cfa is Judgement.WRONG and known is not None and known.cfa is not None:
            base, _ = self._value(known.cfa, state, self._cfa, 0)
            return judged if base in (CFA, self._frame.entry_fp[0]) else _OF_NEXT_FRAME
        return judged

    def _return_address(self, rule: UnwindRule, state: State, cfas: Sequence[Value], scale: int) -> Judgement:
        """Judge the place of a rule's return address, with the one of some CFAs for which the judgement is best."""
        frame = self._frame
        wanted = SIGNED if rule.ra_signed else frame.return_address
        if rule.ra is not None:
            return self._best(rule.ra, state, cfas, wanted, scale)
        if frame.ra is not None:
            return self._compare(state.registers[frame.ra], wanted)
        return Judgement.WRONG  # by the rule, a register has it, but by the ABI none has

    def _frame_pointer(self, rule: UnwindRule, state: State, cfas: Sequence[Value], scale: int) -> Judgement:
        frame = self._frame
        if rule.fp == UNDEFINED:
            return Judgement.UNKNOWN if _has(state, frame.entry_fp) else Judgement.PROVED
        if rule.fp == COMPUTED:
            return Judgement.UNKNOWN
        if rule.fp is None:
            return self._compare(state.registers[frame.fp], frame.entry_fp)
        return self._best(rule.fp, state, cfas, frame.entry_fp, scale)

    def _best(self, rule: RegisterRule, state: State, cfas: Sequence[Value], wanted: Value, scale: int) -> Judgement:
        if len(cfas) == 1:  # most rules are right
            return self._compare(self._value(rule, state, cfas[0], scale), wanted)
        return min(self._compare(self._value(rule, state, cfa, scale), wanted) for cfa in cfas)

    def _value(self, rule: RegisterRule, state: State, cfa: Value, scale: int) -> Value:
        base, offset, in_memory = rule
        value = cfa if base == unwind_rule.CFA else state.registers.get(base, OTHER)
        if offset:
            value = plus(value, offset)
        if scale:
            value = scaled(value, scale) or UNKNOWN
        if not in_memory:
            return value
        if on_stack(value[0]):
            # A function that changes to another stack first saves its stack pointer there, by another register.
            may_be_another = (
                base == self._frame.sp and is_displaced(value[0]) and all(known != value[0] for known, _ in state.slots)
            )
            may_be_saved = (
                state.leaked or is_open(value[0]) or may_be_another or (state.moved and state.may_hold(value))
            )
            return state.slots.get(value, UNKNOWN if may_be_saved else OTHER)
        return UNKNOWN if value[0] in (UNKNOWN_BASE, STACK_BASE) or state.leaked else OTHER

    @staticmethod
    def _compare(value: Value, wanted: Value) -> Judgement:
        if value == wanted or value[0] == wanted[0] == SIGNED_BASE:  # a rule does not have the key
            return Judgement.PROVED
        return Judgement.UNKNOWN if is_open(value[0]) else Judgement.WRONG
