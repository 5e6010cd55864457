"""Judges a rule in an abstract state: proved, unknown or wrong, each value by itself."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, Union

from sframe_unwind import unwind_rule
from sframe_unwind.code.state import Frame, State
from sframe_unwind.code.values import (
    CFA,
    OTHER,
    SIGNED,
    STACK_BASE,
    UNKNOWN,
    UNKNOWN_BASE,
    Value,
    is_open,
    on_stack,
    plus,
)
from sframe_unwind.unwind_rule import COMPUTED, UNDEFINED, RegisterRule, UnwindRule


class Judgement(IntEnum):
    """What the code makes of a rule; of several the greatest counts."""

    PROVED = 0
    UNKNOWN = 1
    WRONG = 2


class Judgements(NamedTuple):
    """Those of the values that a rule gives."""

    cfa: Judgement
    ra: Judgement
    fp: Judgement

    @property
    def worst(self) -> Judgement:
        """The judgement of the rule as a whole."""
        return max(self)


PROVED = Judgements(Judgement.PROVED, Judgement.PROVED, Judgement.PROVED)
NOT_KNOWN = Judgements(Judgement.UNKNOWN, Judgement.UNKNOWN, Judgement.UNKNOWN)

RowRule = Union[UnwindRule, str]
"""A rule, or why a row cannot be said to be one."""


class Judge:
    """Judges the rules of one machine."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._cfa: Value = (CFA, 0)

    def judge(self, rule: RowRule, state: State) -> Judgements:
        """Judge a rule for the instruction before which the machine is in a state."""
        if isinstance(rule, str) or rule.cfa is None:
            return NOT_KNOWN  # that a stack ends does not show in the code
        frame = self._frame
        cfa = self._compare(self._value(rule.cfa, state), self._cfa)
        ra = self.return_address(rule, state)
        if rule.fp in (UNDEFINED, COMPUTED):
            verdict_fp = Judgement.UNKNOWN
        else:
            fp = state.registers[frame.fp] if rule.fp is None else self._value(rule.fp, state)
            verdict_fp = self._compare(fp, frame.entry_fp)
        return Judgements(cfa, ra, verdict_fp) if cfa or ra or verdict_fp else PROVED

    def return_address(self, rule: UnwindRule, state: State) -> Judgement:
        """Judge where a rule takes the return address from."""
        frame = self._frame
        if rule.ra is not None:
            value = self._value(rule.ra, state)
        elif frame.ra is not None:
            value = state.registers[frame.ra]
        else:
            return Judgement.WRONG  # no register has it
        return self._compare(value, SIGNED if rule.ra_signed else frame.return_address)

    def _value(self, rule: RegisterRule, state: State) -> Value:
        base, offset, in_memory = rule
        # Where the return address and the frame pointer are is judged by the CFA that the code has: a wrong CFA is one
        # error, not three.
        value = self._cfa if base == unwind_rule.CFA else state.registers.get(base, OTHER)
        if offset:
            value = plus(value, offset)
        if not in_memory:
            return value
        if on_stack(value[0]):
            return state.slots.get(value, UNKNOWN if state.leaked or is_open(value[0]) else OTHER)
        return UNKNOWN if value[0] in (UNKNOWN_BASE, STACK_BASE) or state.leaked else OTHER

    @staticmethod
    def _compare(value: Value, wanted: Value) -> Judgement:
        if value == wanted:
            return Judgement.PROVED
        return Judgement.UNKNOWN if is_open(value[0]) else Judgement.WRONG
