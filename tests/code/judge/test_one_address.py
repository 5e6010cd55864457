"""A debugger's question: the rule for one address of a function whose bytes it has."""

from __future__ import annotations

from sframe_unwind.arch import amd64
from sframe_unwind.code.judge.judgement import Judgement
from sframe_unwind.code.judge.one_address import FunctionCode
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa

START = 0x401000
CODE = bytes.fromhex("53 31c0 5b c3")  # push %rbx; xor %eax,%eax; pop %rbx; ret


def rule(offset: int) -> UnwindRule:
    return UnwindRule(RegisterRule(amd64.SP, offset, False), saved_at_cfa(-8), None)


def test_proved() -> None:
    function = FunctionCode(amd64.ARCH, START, CODE)
    for pc, offset in ((START, 8), (START + 1, 16), (START + 2, 16), (START + 3, 16), (START + 4, 8)):
        assert str(function.verdict(pc, rule(offset))) == "proved"


def test_wrong() -> None:
    found = FunctionCode(amd64.ARCH, START, CODE).verdict(START + 1, rule(8))
    assert found.judgements.cfa is Judgement.WRONG
    assert str(found) == "wrong: the code has CFA = rsp + 16 since `push %rbx` at 0x401000"


def test_unknown() -> None:
    for name, pc, why in (("f.cold", START, "moved the code out of"), ("f", START + 0x1000, "nothing that is known")):
        verdict = FunctionCode(amd64.ARCH, START, CODE, name).verdict(pc, rule(8))
        assert str(verdict) == "unknown"
        assert why in verdict.why
