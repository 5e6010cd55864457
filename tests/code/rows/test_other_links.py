"""Rows of a function that is called with its return address in another register than the ABI's, on s390x."""

from __future__ import annotations

from pathlib import Path

from sframe_unwind.arch import BY_NAME
from sframe_unwind.convert.from_code import functions_by_code, known_functions
from sframe_unwind.elf import opened
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa
from tests.code.assembled import library

S390X = BY_NAME["s390x"]
IN_R0 = RegisterRule(0, 0, False)
ENTERED, FRAMED = (RegisterRule(S390X.sp, offset, False) for offset in (160, 384))
FUNCTION = """
    .globl f
    .type f,@function
f:  {code}
    .size f,.-f
    .globl g
    .type g,@function
g:  br %r14
    .size g,.-g
"""
MCOUNT = """
    aghi %r15,-224
    stmg %r14,%r5,160(%r15)
    lg %r2,160(%r15)
    brasl %r14,g
    lmg %r14,%r5,160(%r15)
    aghi %r15,224
    lgr %r1,{link}
    br %r1
"""
"""The code of glibc's `__fentry__`: `brasl %r0,__fentry__` is the first instruction of each function of a profile."""


def places(code: str, folder: Path) -> list[tuple[RegisterRule | None, RegisterRule | None] | None]:
    """Return the places of the CFA and of the return address before each instruction of a function."""
    with opened(library("s390x", FUNCTION.format(code=code), folder)) as binary:
        (start,) = binary.symbols.addresses("f")
        found = {one.start: one for one in functions_by_code(binary, known_functions(binary))}[start]
    return list(map(_places, map(found.rule_at, found.instructions)))


def _places(rule: UnwindRule | None) -> tuple[RegisterRule | None, RegisterRule | None] | None:
    return None if rule is None else (rule.cfa, rule.ra)


def test_the_end_of_a_function_shows_where_its_return_address_is(tmp_path: Path) -> None:
    saved = [(FRAMED, saved_at_cfa(160 - 384 + 16))] * 4
    expected = [(ENTERED, IN_R0), (FRAMED, IN_R0), *saved, (ENTERED, IN_R0), (ENTERED, IN_R0)]
    assert places(MCOUNT.format(link="%r0"), tmp_path) == expected


def test_the_return_address_by_the_abi_may_be_copied_before_a_return(tmp_path: Path) -> None:
    saved = [(FRAMED, saved_at_cfa(160 - 384))] * 4
    expected = [(ENTERED, None), (FRAMED, None), *saved, (ENTERED, None), (ENTERED, None)]
    assert places(MCOUNT.format(link="%r14"), tmp_path) == expected


def test_a_tail_call_through_an_argument_is_not_taken_for_a_return(tmp_path: Path) -> None:
    assert places("lgr %r1,%r2; lgr %r2,%r0; br %r1", tmp_path) == [(ENTERED, None)] * 3


def test_a_function_that_may_return_by_the_abi_is_entered_by_it(tmp_path: Path) -> None:
    assert places("ltgr %r2,%r2; je 1f; lgr %r1,%r0; br %r1; 1: br %r14", tmp_path) == [(ENTERED, None)] * 5
