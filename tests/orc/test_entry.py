"""Entries of ORC as bytes."""

from __future__ import annotations

import pytest

from sframe_unwind.cfi.rules import NoRule
from sframe_unwind.errors import FormatError
from sframe_unwind.orc import OrcKind, OrcLayout
from sframe_unwind.orc.entry import decode
from sframe_unwind.unwind_rule import CFA, OUTERMOST, RegisterRule, UnwindRule, saved_at_cfa
from tests.orc.entries import BP, BP_INDIRECT, DI, DX, PREV_SP, R10, R13, SP, SP_INDIRECT, UNDEFINED, entry

OLD, NEW = OrcLayout.WITH_END, OrcLayout.WITH_HEADER
END = 1 << 2
"""The flag ``end`` of the old layout."""
SIGNAL = 1 << 3
"""The flag ``signal`` of the new one."""


@pytest.mark.parametrize(("layout", "call"), [(OLD, 0), (NEW, 2), (NEW, 2 | SIGNAL)])
@pytest.mark.parametrize(
    ("sp", "register"), [((SP, 32), 7), ((BP, 16), 6), ((R10, 0), 10), ((R13, -8), 13), ((DI, 8), 5), ((DX, 8), 1)]
)
def test_a_call_frame(layout: OrcLayout, call: int, sp: tuple[int, int], register: int) -> None:
    decoded = decode(entry(sp, flags=call), layout)
    assert decoded.kind is OrcKind.CALL
    assert decoded.said == UnwindRule(RegisterRule(register, sp[1], False), saved_at_cfa(-8), None)


@pytest.mark.parametrize(
    ("bp", "rule"),
    [
        ((UNDEFINED, 0), None),
        ((PREV_SP, -16), RegisterRule(CFA, -16, True)),
        ((BP, -32), RegisterRule(6, -32, True)),
    ],
)
def test_the_frame_pointer(bp: tuple[int, int], rule: RegisterRule | None) -> None:
    said = decode(entry((SP, 32), bp), OLD).said
    assert isinstance(said, UnwindRule)
    assert said.fp == rule


def test_a_cfa_in_memory() -> None:
    """``unwind_next_frame`` adds the offset to BP before it reads the word, and to the word at SP."""
    by_bp = decode(entry((BP_INDIRECT, -8)), OLD).said
    assert by_bp == UnwindRule(RegisterRule(6, -8, True), saved_at_cfa(-8), None)
    by_sp = decode(entry((SP_INDIRECT, 24)), OLD).said
    assert isinstance(by_sp, NoRule)
    assert (by_sp.rule, by_sp.added) == (UnwindRule(RegisterRule(7, 0, True), saved_at_cfa(-8), None), 24)


@pytest.mark.parametrize(
    ("layout", "flags", "kind"),
    [
        (OLD, 1, OrcKind.REGISTERS),
        (OLD, 2, OrcKind.PARTIAL_REGISTERS),
        (NEW, 3, OrcKind.REGISTERS),
        (NEW, 4 | SIGNAL, OrcKind.PARTIAL_REGISTERS),
    ],
)
def test_registers_of_an_exception(layout: OrcLayout, flags: int, kind: OrcKind) -> None:
    decoded = decode(entry((SP, 8), flags=flags), layout)
    assert (decoded.kind, decoded.place) == (kind, RegisterRule(7, 8, False))
    assert isinstance(decoded.said, NoRule)
    assert decoded.said.rule is None


def test_the_end_of_a_stack() -> None:
    for data, layout in ((entry((UNDEFINED, 0), flags=END), OLD), (entry((UNDEFINED, 0), flags=1), NEW)):
        decoded = decode(data, layout)
        assert decoded.kind is OrcKind.END
        assert decoded.said == OUTERMOST


def test_nothing_is_known() -> None:
    for layout in OrcLayout:
        decoded = decode(entry((UNDEFINED, 0)), layout)
        assert decoded.kind is OrcKind.UNDEFINED
        assert decoded.said is None


@pytest.mark.parametrize(
    ("data", "layout"),
    [
        (entry((SP, 8), flags=3), OLD),
        (entry((SP, 8), flags=1 << 3), OLD),  # the layout of 6.3 has a flag more
        (entry((SP, 8), flags=5), NEW),
        (entry((SP, 8), flags=1 << 4), NEW),
        (entry((PREV_SP, 8)), OLD),
        (entry((10, 8)), OLD),
        (entry((UNDEFINED, 8), flags=2), NEW),
        (entry((SP, 8), (SP, -8)), OLD),
    ],
)
def test_what_the_layout_does_not_have(data: bytes, layout: OrcLayout) -> None:
    with pytest.raises(FormatError, match=f"ORC entry {data.hex()}"):
        decode(data, layout)
