"""The values that prove a rule: with them the judge proves it, and without one of them it does not."""

from __future__ import annotations

from typing import Callable

import pytest

from sframe_unwind.code.decode.machines import MACHINES
from sframe_unwind.code.interpret.state import Frame, State
from sframe_unwind.code.interpret.values import CFA, OTHER, SIGNED, UNKNOWN
from sframe_unwind.code.judge.judgement import PROVED, Judge
from sframe_unwind.code.judge.needs import NO_NEEDS, needs_of
from sframe_unwind.unwind_rule import COMPUTED, OUTERMOST, UNDEFINED, RegisterRule, UnwindRule, saved_at_cfa


def in_frame(frame: Frame) -> tuple[UnwindRule, State]:
    """Return the rule of a frame of 64 bytes that has saved the return address and the frame pointer, and its state."""
    state = frame.entry()
    state.registers[frame.sp] = CFA, -64
    state.registers[frame.fp] = OTHER
    state.slots[CFA, -8] = frame.return_address
    state.slots[CFA, -16] = frame.entry_fp
    return UnwindRule(RegisterRule(frame.sp, 64, False), saved_at_cfa(-8), saved_at_cfa(-16)), state


def at_entry(frame: Frame) -> tuple[UnwindRule, State]:
    """Return the rule at the entry of a function, and its state."""
    ra = saved_at_cfa(-8) if frame.ra is None else None
    return UnwindRule(RegisterRule(frame.sp, -frame.entry_sp[1], False), ra, None), frame.entry()


@pytest.mark.parametrize("make", [at_entry, in_frame])
@pytest.mark.parametrize("name", ["amd64", "aarch64", "s390x"])
def test_each_value_is_needed(name: str, make: Callable[[Frame], tuple[UnwindRule, State]]) -> None:
    frame = Frame(MACHINES[name])
    judge = Judge(frame)
    rule, state = make(frame)
    needs = judge.needs(rule)
    assert needs is not None
    assert needs.are_met(state)
    assert judge.judge(rule, state) is PROVED
    for what, found in (("registers", needs.registers), ("slots", needs.slots)):
        for key, value in found:
            for other in (UNKNOWN, OTHER, (CFA, 8)):
                changed = state.copy()
                getattr(changed, what)[key] = other
                assert other == value or not needs.are_met(changed)
                assert judge.judge(rule, changed) is not PROVED


def test_signed_return_address() -> None:
    frame = Frame(MACHINES["aarch64"])
    rule, state = in_frame(frame)
    needs = needs_of(rule._replace(ra_signed=True), frame)
    assert needs is not None
    assert not needs.are_met(state)
    state.slots[CFA, -8] = SIGNED
    assert needs.are_met(state)


def test_rules_that_have_to_be_judged() -> None:
    frame = Frame(MACHINES["amd64"])
    usual, _ = in_frame(frame)
    assert usual.cfa is not None
    for rule in (
        OUTERMOST,
        usual._replace(cfa=usual.cfa._replace(in_memory=True)),
        usual._replace(ra=None),  # AMD64 has no register for it
        usual._replace(fp=UNDEFINED),
        usual._replace(fp=COMPUTED),
        usual._replace(fp=RegisterRule(3, 0, False)),
        usual._replace(ra=RegisterRule(6, -8, True)),
    ):
        assert needs_of(rule, frame) is None


def test_needs_of_two_tables() -> None:
    frame = Frame(MACHINES["amd64"])
    one, two = (needs_of(make(frame)[0], frame) for make in (at_entry, in_frame))
    assert one is not None
    assert two is not None
    assert NO_NEEDS.plus(one) == one == one.plus(one)
    both = one.plus(two)
    assert not both.are_met(at_entry(frame)[1])
    assert not both.are_met(in_frame(frame)[1])
