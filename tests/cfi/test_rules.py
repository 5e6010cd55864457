"""The rules of rows of CFI: equal instructions share them, and those of a PLT are computed once for equal low bits."""

from __future__ import annotations

from typing import Any

import pytest

from sframe_unwind.cfi import rules
from sframe_unwind.cfi.expression import evaluate
from sframe_unwind.cfi.records import Fde, Records
from sframe_unwind.cfi.row import Expression
from sframe_unwind.cfi.rules import CfiRules
from tests.cfi.encoding import AMD64, START, debug_frame, sleb, uleb

PLT = bytes([0x77, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22])
"""``breg7+8 breg16+0 lit15 and lit11 ge lit3 shl plus``: GNU ld's expression for a PLT."""
ABOVE = b"\x77\x08\x80\x00\x0c" + (START + 20).to_bytes(4, "little") + b"\x2a\x33\x24\x22"
"""``breg7+8 breg16+0 const4u ge lit3 shl plus``: every bit of the pc counts."""


def entry(code: bytes) -> Fde:
    """Return an FDE with some instructions."""
    data, offset = debug_frame(code)
    return Records(data, 0, AMD64, debug_frame=True).fde(offset)


def with_cfa(expression: bytes) -> bytes:
    """Return the instruction that sets the CFA to the value of an expression."""
    return b"\x0f" + uleb(len(expression)) + expression


@pytest.mark.parametrize("expression", [PLT, PLT[:3] + sleb(5) + PLT[4:], ABOVE])
def test_rules_at_each_address(expression: bytes) -> None:
    fde = entry(with_cfa(expression))
    function = fde.decode()
    offsets, said = CfiRules(AMD64).of(fde, fde.start, fde.end)
    expected = [function.rule_at(pc, AMD64)._replace(others=None) for pc in range(fde.start, fde.end)]
    shown = dict(zip(offsets, said))
    current, found = said[0], []
    for offset in range(fde.end - fde.start):
        current = shown.get(offset, current)
        found.append(current)
    assert found == expected
    assert len(set(expected)) == 2


@pytest.mark.parametrize(("expression", "most"), [(PLT, 16), (ABOVE, 0x100)])
def test_expression_is_evaluated_for_the_bits_that_it_uses(
    expression: bytes, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated: list[int] = []

    def counting(code: bytes, pc: int, *rest: Any) -> Any:
        evaluated.append(pc)
        return evaluate(code, pc, *rest)

    monkeypatch.setattr("sframe_unwind.cfi.row.evaluate", counting)
    fde = entry(with_cfa(expression))
    CfiRules(AMD64).of(fde, fde.start, fde.end)
    # The first evaluation finds out that the rule depends on the address.
    assert len(evaluated) == most + (most > 16)


@pytest.mark.parametrize("mask", range(32))
def test_only_a_mask_of_low_bits_makes_equal_places(mask: int) -> None:
    expression = PLT[:4] + bytes([0x30 + mask]) + PLT[5:]
    row = entry(with_cfa(expression)).decode().rows[-1]
    assert row.cfa == Expression(expression, False)
    row.rule(AMD64, 16, START)
    is_low = mask in (0, 1, 3, 7, 15, 31)
    assert row.pc_bits == (mask if is_low else (1 << 64) - 1)


def test_equal_instructions_share_their_rows() -> None:
    known = CfiRules(AMD64)
    fde = entry(b"\x41\x0e\x10\x86\x02\x43\x0d\x06")
    other = fde._replace(start=fde.start + 0x1000, end=fde.end + 0x1020)
    assert known.of(fde, fde.start, fde.end) is known.of(other, other.start, other.end)
    assert known.of(other, other.start, other.end) == known.rows(other.decode(), other.start, other.end)


def test_absolute_locations_are_not_shared() -> None:
    known = CfiRules(AMD64)
    fde = entry(b"\x01" + (START + 4).to_bytes(8, "little") + b"\x0e\x10")
    other = fde._replace(start=fde.start - 8, end=fde.end)
    assert known.of(fde, fde.start, fde.end)[0] == [0, 4]
    assert known.of(other, other.start, other.end)[0] == [0, 12]


def test_tables_are_forgotten_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_KEPT_TABLES", 2)
    known = CfiRules(AMD64)
    for offset in (16, 24, 32, 16, 24, 32):
        fde = entry(b"\x41\x0e" + bytes([offset]))
        _, said = known.of(fde, fde.start, fde.end)
        assert [one.cfa and one.cfa.offset for one in said if not isinstance(one, rules.NoRule)] == [8, offset]
