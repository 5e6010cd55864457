"""Rows at calls from the machine code: while the callee runs, registers that calls overwrite do not have the CFA."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.code.rows.at_address import CodeRows
from sframe_unwind.elf import opened
from sframe_unwind.unwind_rule import RegisterRule
from tests.code.assembled import library

RBP, RSP, R10 = 6, 7, 10
REALIGNED = """
    .type f,%function
f:  lea 8(%rsp),%r10
    and $-32,%rsp
    push -8(%r10)
    push %rbp
    mov %rsp,%rbp
saving:
    {save}
    nop
calling:
    call g
    mov -8(%rbp),%r10
    leave
    lea -8(%r10),%rsp
returning:
    ret
    .size f,.-f
    .type g,%function
g:  ret
    .size g,.-g
"""
"""The code that GCC generates for a function with an aligned variable: r10 holds the CFA while the stack is aligned."""


@pytest.mark.parametrize("save", ["push %r10", "sub $8,%rsp; mov %r10,-8(%rbp)"])
def test_the_saved_cfa_is_the_base(save: str, tmp_path: Path) -> None:
    linked = library("amd64", REALIGNED.format(save=save), tmp_path)
    with opened(linked) as binary:
        places = {symbol.name: symbol.address for symbol in binary.symbols}
    rows = CodeRows(str(linked))
    found = {name: rows.at(places[name]) for name in ("f", "saving", "calling", "returning")}
    assert {name: row.rule.cfa for name, row in found.items() if row is not None} == {
        "f": RegisterRule(RSP, 8, False),
        "saving": RegisterRule(R10, 0, False),
        "calling": RegisterRule(RBP, -8, True),
        "returning": RegisterRule(RSP, 8, False),
    }
