"""Functions that a version of SFrame cannot describe are named with the reason."""

from __future__ import annotations

import pytest

from sframe_unwind.arch.amd64 import ARCH, FP
from sframe_unwind.cfi.rules import NoRule
from sframe_unwind.translation.description import Loss
from sframe_unwind.translation.to_sframe import Target, make_table
from sframe_unwind.unwind_rule import COMPUTED, OUTERMOST, UNDEFINED, RegisterRule
from tests.translation.descriptions import RULE, description


@pytest.mark.parametrize(
    ("rule", "target", "reason"),
    [
        (NoRule("computed: DW_OP_div"), Target(3), "computed: DW_OP_div"),
        (RULE._replace(fp=UNDEFINED), Target(3), "rbp cannot be restored"),
        (RULE._replace(fp=COMPUTED), Target(3), "rbp is computed by an expression"),
        (RULE._replace(ra=None), Target(3), "at +0x0: RA not saved, but the header says that it is always at CFA-8"),
        (OUTERMOST, Target(2), "the return address is undefined, for which version 2 has no row"),
        (
            RULE._replace(cfa=RegisterRule(10, 0, False)),
            Target(3, flexible=False),
            "at +0x0: CFA r10+0, expected SP or FP plus an offset; it takes flexible rows",
        ),
        (
            RULE._replace(cfa=RegisterRule(FP, -16, True)),
            Target(2, flexible=False),
            "at +0x0: CFA [rbp-16], expected SP or FP plus an offset",
        ),
    ],
)
def test_reasons_for_what_is_left_out(rule: object, target: Target, reason: str) -> None:
    made = make_table([description((0, rule))], ARCH, target)
    assert made.losses == (Loss(0x1000, 0x1020, reason),)
    assert made.table.functions == ()


def test_more_reasons() -> None:
    flexible = (4, RULE._replace(cfa=RegisterRule(10, 0, False)))
    mixed = description((0, OUTERMOST), flexible)
    assert make_table([mixed], ARCH, Target(3)).losses == ()
    (loss,) = make_table([mixed], ARCH, Target(3, outermost_in_flexible=False)).losses
    assert loss.reason == "the return address is undefined in one row, and another takes flexible rows"
    (loss,) = make_table([description((0, RULE), signal=True)], ARCH, Target(2)).losses
    assert loss.reason == "a signal trampoline, which version 2 cannot mark"
    (loss,) = make_table([description((0, RULE)), description((0, RULE), start=0x1010)], ARCH, Target(3)).losses
    assert loss == Loss(0x1010, 0x1030, "overlaps the function before it")
    many = description(*((number, RULE) for number in range(1 << 16)), size=1 << 16)
    (loss,) = make_table([many], ARCH, Target(3)).losses
    assert loss.reason == "65,536 rows, more than 65,535"
