"""Walks by plain rules: a method takes over the walk of another one only if its own would be the same."""

from __future__ import annotations

from sframe_unwind.arch import BY_NAME
from sframe_unwind.perf.plain_rules import PlainRules, Walked
from sframe_unwind.unwind.walk import Registers
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa

AMD64 = BY_NAME["amd64"]
START = 0x7000
INNERMOST, CALLER, OUTER, ELSEWHERE = 0x1010, 0x2020, 0x3030, 0x4040
WORDS = [CALLER, 0, OUTER, 0, 0, 0]
"""The frame at ``INNERMOST`` has 8 bytes, that at ``CALLER`` 16."""
Rules = dict[int, UnwindRule]


def by_sp(offset: int) -> UnwindRule:
    """Return the rule of a frame whose CFA is the stack pointer plus an offset."""
    return UnwindRule(RegisterRule(7, offset, False), saved_at_cfa(-8), None)


RULES = {INNERMOST: by_sp(8), CALLER - 1: by_sp(16)}


def walked(rules: Rules) -> Walked:
    """Walk from the innermost frame by rules, which are given by lookup address."""
    plain = PlainRules(AMD64, rules.get)
    return Walked(plain, *plain.follow(WORDS, START, Registers(INNERMOST, START, 0), interrupted=True))


def is_shared(rules: Rules) -> bool:
    """Return whether other rules share the walk by ``RULES``; check that a second question has the same answer."""
    first, other = walked(RULES), PlainRules(AMD64, rules.get)
    found = other.shares(first, first.pcs)
    assert other.shares(first, first.pcs) == found
    return found


def test_the_walk_itself() -> None:
    first = walked(RULES)
    assert first.frames == [(INNERMOST, START, 0, START + 8), (CALLER, START + 8, 0, START + 24)]
    assert first.pcs == [INNERMOST, CALLER, OUTER]
    assert first.registers == Registers(OUTER, START + 24, 0)


def test_equal_rules_at_all_pcs_share_the_walk() -> None:
    assert is_shared(dict(RULES))
    assert is_shared({**RULES, ELSEWHERE: by_sp(8)})  # a rule that the walk does not use


def test_another_rule_at_one_pc_does_not() -> None:
    for lookup, offset in ((INNERMOST, 24), (CALLER - 1, 24), (OUTER - 1, 8)):
        rules = {**RULES, lookup: by_sp(offset)}
        assert not is_shared(rules), hex(lookup)
        assert walked(rules).pcs != walked(RULES).pcs or lookup == OUTER - 1


def test_a_missing_rule_does_not() -> None:
    for lookup in RULES:
        assert not is_shared({at: rule for at, rule in RULES.items() if at != lookup})


def test_the_innermost_pc_is_no_return_address() -> None:
    """Its rule is looked up at the pc itself: a rule for the address before it does not count."""
    assert is_shared({**RULES, INNERMOST - 1: by_sp(24)})
