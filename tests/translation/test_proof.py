"""The proof of a translation finds each difference from its source."""

from __future__ import annotations

import pytest

from sframe_unwind.arch.amd64 import ARCH
from sframe_unwind.errors import TranslationError
from sframe_unwind.translation.description import Description, Loss
from sframe_unwind.translation.proof import prove
from sframe_unwind.unwind_rule import OUTERMOST
from tests.translation.descriptions import RULE, description


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([description((0, RULE), (9, OUTERMOST))], "at 0x1008 the source says"),
        ([description((0, RULE), (8, OUTERMOST), signal=True)], "is not marked as its source is"),
        ([description((8, OUTERMOST))], "at 0x1000 the source says .* the result None"),
        ([description((0, RULE), size=8)], "does not describe the function at 0x1000 exactly once"),
        ([description((0, RULE), (8, OUTERMOST))] * 2, "does not describe the function at 0x1000 exactly once"),
        ([description((0, RULE), start=0x2000)], "the result describes 0x2000 to 0x2020, no source does"),
        ([], "does not describe the function at 0x1000 exactly once"),
    ],
)
def test_proof_finds_what_differs(result: list[Description], message: str) -> None:
    source = [description((0, RULE), (8, OUTERMOST))]
    assert prove(source, source, [], ARCH) == 2
    assert prove(source, [], [Loss(0x1000, 0x1020, "named")], ARCH) == 0
    with pytest.raises(TranslationError, match=message):
        prove(source, result, [], ARCH)
