"""Rows of code that is reached only if something holds which the code does not show, on AMD64."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.arch import BY_NAME
from sframe_unwind.code.image.not_returning import is_not_returning
from sframe_unwind.convert.from_code import functions_by_code, known_functions
from sframe_unwind.elf import opened
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa
from tests.code.assembled import linked

AMD64 = BY_NAME["amd64"]
ENTERED, FRAMED, DEEPER = (RegisterRule(AMD64.sp, offset, False) for offset in (8, 32, 40))


def cfas(source: str, folder: Path) -> list[RegisterRule | None]:
    """Return the CFA before each instruction of the function ``f``; ``None``: it has no row."""
    return [None if rule is None else rule.cfa for rule in rules(source, folder)]


def rules(source: str, folder: Path) -> list[UnwindRule | None]:
    """Return the rule before each instruction of the function ``f``; ``None``: it has no row."""
    with opened(linked(source, folder)) as binary:
        start = next(symbol.address for symbol in binary.symbols if symbol.name == "f")
        found = {one.start: one for one in functions_by_code(binary, known_functions(binary))}[start]
    return list(map(found.rule_at, found.instructions))


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


KEEPS_AN_ADDRESS = """
    .globl f, callee
    .type f, @function
f:  sub $24, %rsp
    mov %rbp, 16(%rsp)
    lea 16(%rsp), %rbp
    mov %rbp, {place}(%rsp)
    lea {place}(%rsp), %rbp
    call callee
    mov (%rbp), %rbp
    nop
    mov 16(%rsp), %rbp
    add $24, %rsp
    ret
    .size f, .-f
    .type callee, @function
callee:
    ret
    .size callee, .-callee
    """


def test_no_callee_gets_an_address_from_below_the_stack_pointer(tmp_path: Path) -> None:
    after = cfas(KEEPS_AN_ADDRESS.format(place=-16), tmp_path)[6:]
    assert after == [RegisterRule(AMD64.fp, 48, False), FRAMED, FRAMED, FRAMED, ENTERED]


def test_a_callee_may_get_an_address_from_above_the_stack_pointer(tmp_path: Path) -> None:
    assert None in cfas(KEEPS_AN_ADDRESS.format(place=0), tmp_path)[6:]


VFORK = """
    .globl f
    .type f, @function
f:  pop %rdi
    mov $58, %eax
    syscall
    push %rdi
    ret
    .size f, .-f
    """


def test_the_child_of_vfork_may_overwrite_the_return_address(tmp_path: Path) -> None:
    places = [None if rule is None else rule.ra for rule in rules(VFORK, tmp_path)]
    assert places == [saved_at_cfa(-8), *[RegisterRule(5, 0, False)] * 3, saved_at_cfa(-8)]


@pytest.mark.parametrize(
    ("name", "is_end"),
    [
        ("runtime.throw", True),
        ("runtime.gopanic", True),
        ("runtime.goPanicIndex", True),
        ("runtime.panicSliceAcap.abi0", True),
        ("runtime.panicdivide", True),
        ("runtime.panicCheck1", False),  # it panics only if it is called by malloc
        ("runtime.throw.func1", False),
    ],
)
def test_functions_of_go_that_do_not_return(name: str, is_end: bool) -> None:
    assert is_not_returning(name) == is_end


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


def test_the_target_of_a_jump_may_be_kept_in_the_frame(tmp_path: Path) -> None:
    """Clang without optimisation puts all computed jumps of a function in one place."""
    kept = JUMP.format("first").replace("jmp *%rax", "mov %rax, (%rsp); mov (%rsp), %rcx; jmp *%rcx")
    source = FUNCTION.format(code=f"{kept} 1: {RETURN} 2: xor %eax, %eax; {RETURN}", entries="1b - first, 2b - first")
    assert cfas(source, tmp_path)[-5:] == [FRAMED, ENTERED, FRAMED, FRAMED, ENTERED]


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
