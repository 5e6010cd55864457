"""Rows as the cases and the readers write them; ``conformance/README.md`` explains the notation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from sframe_unwind.unwind_rule import CFA, RegisterRule, UnwindRule

Row = Optional[dict[str, Any]]
"""The row that a section gives for an address; ``None``: it gives none."""
OUTERMOST: dict[str, Any] = {"outermost": True}
SAME = "same"
"""The register is unchanged."""


def place(base: int | None, offset: int, in_memory: bool) -> str:
    """Return the text of a value.

    :param base: DWARF register number; ``None``: the CFA.
    """
    value = f"{'cfa' if base is None else f'r{base}'}{offset:+}"
    return f"[{value}]" if in_memory else value


def row(places: Sequence[str], ra_signed: bool = False) -> dict[str, Any]:
    """Return a row that is not the outermost one.

    :param places: of CFA, return address and frame pointer.
    """
    cfa, ra, fp = places
    return {"cfa": cfa, "ra": ra, "fp": fp, "signed": ra_signed}


def of_rule(rule: UnwindRule) -> dict[str, Any]:
    """Return the row for a rule."""
    if rule.cfa is None:
        return OUTERMOST
    return row([_text(rule.cfa), _text(rule.ra), _text(rule.fp)], rule.ra_signed)


def _text(rule: RegisterRule | None) -> str:
    return SAME if rule is None else place(None if rule.base == CFA else rule.base, rule.offset, rule.in_memory)
