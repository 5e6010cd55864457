"""One rule of SFrame against one of DWARF CFI."""

from __future__ import annotations

from typing import NamedTuple

from sframe_unwind.arch import Arch
from sframe_unwind.dwarf.cfi import Row
from sframe_unwind.dwarf.expression import UnsupportedExpressionError
from sframe_unwind.dwarf.file import Cfi
from sframe_unwind.report.notation import place_words
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule
from sframe_unwind.verify.verdict import Words


class Pair(NamedTuple):
    """Both rules in words, and where they differ."""

    sframe: Words
    dwarf: Words
    differs: tuple[str, ...]
    """Of ``cfa``, ``ra``, ``fp``."""


class Pairs:
    """Compares rules, each distinct pair once: a program of 20,000 functions has a few hundred.

    :param cfi: where the rows of DWARF come from.
    """

    def __init__(self, cfi: Cfi, arch: Arch) -> None:
        self._cfi = cfi
        self._arch = arch
        self._known: dict[tuple[UnwindRule, Row], Pair] = {}

    def pair(self, sframe: UnwindRule, row: Row, pc: int) -> Pair:
        """Compare what both say for an address."""
        known = self._known.get((sframe, row))
        if known is None:
            known = self._compare(sframe, row, pc)
            if not self._cfi.is_computed_from_pc(row):
                self._known[sframe, row] = known
        return known

    def _compare(self, sframe: UnwindRule, row: Row, pc: int) -> Pair:
        said = self._words(sframe)
        try:
            dwarf = self._cfi.rule(row, pc)
        except UnsupportedExpressionError as error:
            return Pair(said, Words(f"computed: {error}", "", ""), ("cfa",))
        return Pair(said, self._words(dwarf), _differences(sframe, dwarf))

    def _words(self, rule: UnwindRule) -> Words:
        if rule.cfa is None:
            return Words("", "undefined", "")
        ra = self._place(rule.ra) + (", signed" if rule.ra_signed else "")
        return Words(self._place(rule.cfa), ra, self._place(rule.fp))

    def _place(self, place: RegisterRule | None) -> str:
        return "unchanged" if place is None else place_words(place, self._arch)


def _differences(sframe: UnwindRule, dwarf: UnwindRule) -> tuple[str, ...]:
    if sframe.ra_undefined or dwarf.ra_undefined:
        return () if sframe.ra_undefined and dwarf.ra_undefined else ("ra",)
    same = {
        "cfa": sframe.cfa == dwarf.cfa,
        "ra": (sframe.ra, sframe.ra_signed) == (dwarf.ra, dwarf.ra_signed),
        "fp": sframe.fp == dwarf.fp,
    }
    return tuple(what for what, agrees in same.items() if not agrees)
