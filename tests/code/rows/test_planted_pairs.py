"""Rows from the code of planted functions, without their tables, are right in QEMU.

`python -m lab.code.executed --rows` compares all of them; `--stripped` hides their symbols, too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.code.executed.by_code import RowsByCode
from lab.code.recipes import MACHINES
from tests.missing import toolchain_needed

_EVERY = 12
"""One pair of so many is executed, besides those whose rows were once wrong."""
_ONCE_WRONG = (
    "an address in the frame is one of several:  add x7,x9,x10",
    "a callee does not restore what it saved:",
    "a store overlaps a saved register, or an address in the frame reaches what does not look like a pointer to it:  "
    "mov x1,x9; mov x8,#113",
    "a store overlaps a saved register, or an address in the frame reaches what does not look like a pointer to it:  "
    "mov x29,x9; add x29,x29,x10",
    "a callee returns by a jump, with another stack pointer:",
    "an address in the frame is carried:  larl %r1,1f; j 2f; 1: mvc",
    "the slot of the frame pointer is overwritten:  larl %r1,1f; ex %r0",
    "the return address is overwritten:  bras %r10,1f",
)
"""The beginnings of the titles of these."""
_LEAST_WHOLE = 0.4
"""Minimum share of functions with a right row at each instruction; half of all lose a value of their caller's."""


@pytest.mark.parametrize("with_symbols", [True, False], ids=["symbols", "stripped"])
@pytest.mark.parametrize("machine", MACHINES)
def test_rows_by_the_code_hold_where_it_is_executed(machine: str, with_symbols: bool, tmp_path: Path) -> None:
    with toolchain_needed():
        by_code = RowsByCode(machine, tmp_path, with_symbols)
        titles = enumerate(pair.recipe.title for pair in by_code.pairs)
        chosen = [number for number, title in titles if number % _EVERY == 0 or title.startswith(_ONCE_WRONG)]
        results = list(by_code.results(chosen))
    wrong = {result.function.name: list(map(hex, result.different)) for result in results if result.different}
    assert wrong == {}
    whole = [result for result in results if not result.unknown]
    assert len(whole) >= _LEAST_WHOLE * len(results)
