"""Rows of code that is reached only if something holds which the code does not show, on AMD64."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.arch import BY_NAME
from sframe_unwind.convert.from_code import functions_by_code, known_functions
from sframe_unwind.elf import opened
from sframe_unwind.unwind_rule import RegisterRule
from tests.code.assembled import linked

AMD64 = BY_NAME["amd64"]
ENTERED, FRAMED, DEEPER = (RegisterRule(AMD64.sp, offset, False) for offset in (8, 32, 40))


def cfas(source: str, folder: Path) -> list[RegisterRule | None]:
    """Return the CFA before each instruction of the function ``f``; ``None``: it has no row."""
    with opened(linked(source, folder)) as binary:
        start = next(symbol.address for symbol in binary.symbols if symbol.name == "f")
        found = {one.start: one for one in functions_by_code(binary, known_functions(binary))}[start]
    rules = map(found.rule_at, found.instructions)
    return [None if rule is None else rule.cfa for rule in rules]


LEADS_TO_A_TRAP = """
    .globl f, quits
    .type f, @function
f:  sub $24, %rsp
    test %edi, %edi
    je 1f
    add $24, %rsp
    ret
1:  call quits
    jmp 2f
    call quits
2:  ud2
    .size f, .-f
    .type quits, @function
quits:
    mov $60, %eax
    syscall
    hlt
    .size quits, .-quits
    """


def test_traps_after_calls_that_do_not_return_have_rows(tmp_path: Path) -> None:
    # The second call is never executed; the trap and the jump to it are, if the first call returns after all.
    assert cfas(LEADS_TO_A_TRAP, tmp_path)[-4:] == [FRAMED, FRAMED, None, FRAMED]


JUMP = """
    lea {0}(%rip), %rdx
    movslq (%rdx,%rdi,4), %rax
    add %rdx, %rax
    jmp *%rax
    """
"""A jump by a table whose index is not compared with a limit."""
FUNCTION = """
    .globl f
    .type f, @function
f:  sub $24, %rsp
    {code}
    .size f, .-f
    .section .rodata
    .balign 4
first:
    .long {entries}
    .quad -1
second:
    .long 2b - second
    """
RETURN = "add $24, %rsp; ret;"
TO_SECOND = f"1: push %rdi; {JUMP.format('second')} 2: pop %rdi; {RETURN}"


def function(code: str, entries: str) -> str:
    """Return the source of a function which first jumps by a table with some entries."""
    return FUNCTION.format(code=JUMP.format("first") + code, entries=entries)


def test_cases_of_a_table_without_a_limit_have_rows(tmp_path: Path) -> None:
    source = function(f"1: {RETURN} 2: xor %eax, %eax; {RETURN}", "1b - first, 2b - first")
    assert cfas(source, tmp_path) == [ENTERED, *[FRAMED] * 5, ENTERED, FRAMED, FRAMED, ENTERED]


def test_a_case_with_the_frames_of_two_tables_has_no_row(tmp_path: Path) -> None:
    """Both tables are read beyond their ends, and the first one seems to have the case of the second."""
    before = [ENTERED, *[FRAMED] * 5, *[DEEPER] * 4]
    assert cfas(function(TO_SECOND, "1b - first"), tmp_path) == [*before, DEEPER, FRAMED, ENTERED]
    assert cfas(function(TO_SECOND, "1b - first, 2b - first"), tmp_path) == [*before, None, None, None]


@pytest.mark.parametrize("before", ["push %rbx;", "jmp *%rsi; 4:"])
def test_a_case_after_code_that_nothing_is_known_to_reach_has_no_row(before: str, tmp_path: Path) -> None:
    """What reaches that code may also reach the case, as where another function begins there."""
    source = function(f"1: {RETURN} {before} 2: xor %eax, %eax; {RETURN}", "1b - first, 2b - first")
    found = cfas(source, tmp_path)
    assert found[:7] == [ENTERED, *[FRAMED] * 5, ENTERED]
    assert set(found[7:]) == {None}


def test_no_case_has_a_row_if_another_jump_leads_anywhere(tmp_path: Path) -> None:
    source = function(f"1: jmp *%rsi; 2: xor %eax, %eax; {RETURN}", "1b - first, 2b - first")
    assert cfas(source, tmp_path)[5:] == [None] * 4


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("sub $40, %rsp; and $-16, %rsp; call *%rax; add $40, %rsp; ret", [8, 48, None, None, None]),
        ("sub $40, %rsp; and $-8, %rsp; call *%rax; add $40, %rsp; ret", [8, 48, 48, 48, 8]),
    ],
)
def test_code_that_aligns_its_stack_does_not_rely_on_its_caller(
    code: str, expected: list[int | None], tmp_path: Path
) -> None:
    """Functions of Go call others with a stack that is not aligned to 16 bytes."""
    found = cfas(f".globl f; .type f, @function; f: {code}; .size f, .-f", tmp_path)
    assert found == [None if offset is None else RegisterRule(AMD64.sp, offset, False) for offset in expected]


def test_a_saved_stack_pointer_is_the_base_while_the_stack_is_aligned(tmp_path: Path) -> None:
    code = "push %rbp; mov %rsp, %rbp; and $-16, %rsp; call *%rax; leave; ret"
    found = cfas(f".globl f; .type f, @function; f: {code}; .size f, .-f", tmp_path)
    framed = RegisterRule(AMD64.fp, 16, False)
    assert found[3:] == [framed, framed, ENTERED]
