"""Formats rules in the short notation of ``readelf``, with the debuggers' names of registers.

:mod:`sframe_unwind.report.notation` formats the bytes of a row of SFrame.  Here, the columns are made from the rule, so
that the rules of SFrame and of DWARF CFI look the same where they are the same.

===============  =====================================================
``rsp+16``       the register plus the offset
``c-16``         saved in memory at CFA - 16
``cfa-16``        CFA - 16 itself
``(rbp-16)``     in memory at ``rbp-16``
``(rsp+24)+8``   of the CFA: the word in memory at ``rsp+24``, plus 8
``u``            unchanged; of the return address: still in its register
``x30``          in this register
``exp``          computed by a DWARF expression that no rule can hold; or nothing is known but that there is no rule
``undef``        undefined
===============  =====================================================
"""

from __future__ import annotations

from typing import Union

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.rules import NoRule
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report.notation import SIGNED, describe_register_rule
from sframe_unwind.unwind_rule import CFA, COMPUTED, UNDEFINED, RegisterRule, UnwindRule

VALUES = ("cfa", "fp", "ra")
"""The values of a rule in the order of readelf's columns."""
VALUE_NAMES = {"cfa": "CFA", "fp": "frame pointer", "ra": "return address"}
"""Their names in words."""


class RuleCells(NamedTuple):
    """The three columns of a rule."""

    cfa: str
    fp: str
    ra: str


OUTERMOST = RuleCells("", "", "undef")
COMPUTED_CFA = RuleCells("exp", "", "")


def rule_cells(rule: Union[UnwindRule, NoRule, str], arch: Arch) -> RuleCells:  # noqa: UP007  # Python 3.9
    """Return the columns of a rule.

    :param rule: a rule; or the reason why the unwind data has none that can be shown.
    """
    if isinstance(rule, NoRule) and rule.rule is not None:
        cfa, fp, ra = rule_cells(rule.rule, arch)
        return RuleCells(f"{cfa}{rule.added:+d}", fp, ra)
    if isinstance(rule, NoRule) and rule.known is not None:
        rule = rule.known
    if not isinstance(rule, UnwindRule):
        return COMPUTED_CFA
    if rule.cfa is None:
        return OUTERMOST
    ra = cell(rule.ra, arch) + (SIGNED if rule.ra_signed else "")
    return RuleCells(cell(rule.cfa, arch), cell(rule.fp, arch), ra)


def in_words(rule: UnwindRule, arch: Arch) -> tuple[str, str, str]:
    """Return CFA, return address and frame pointer of a rule in words; empty: the outermost frame has no such value."""
    if rule.cfa is None:
        return "", "undefined", ""
    ra = _in_words(rule.ra, arch) + (", signed" if rule.ra_signed else "")
    return _in_words(rule.cfa, arch), ra, _in_words(rule.fp, arch)


def difference(what: str, sframe: UnwindRule, dwarf: UnwindRule | NoRule, arch: Arch) -> str:
    """Return a sentence about a value in which two rules differ.

    :param what: one of :data:`VALUES`.
    """
    return f"{VALUE_NAMES[what]}: {_said(what, sframe, arch)} by SFrame, {_said(what, dwarf, arch)} by DWARF CFI"


def _said(what: str, rule: UnwindRule | NoRule, arch: Arch) -> str:
    if isinstance(rule, NoRule):
        return rule.why
    return dict(zip(("cfa", "ra", "fp"), in_words(rule, arch)))[what] or "none"


def _in_words(rule: RegisterRule | None, arch: Arch) -> str:
    return "unchanged" if rule is None else describe_register_rule(rule, arch)


def cell(rule: RegisterRule | None, arch: Arch) -> str:
    """Return the column of one value; ``None``: it is unchanged."""
    if rule is None:
        return "u"
    if rule == UNDEFINED:
        return "undef"
    if rule == COMPUTED:
        return "exp"
    if rule.base == CFA:
        return f"c{rule.offset:+d}" if rule.in_memory else f"cfa{rule.offset:+d}"
    name = arch.register_name(rule.base)
    if rule.in_memory:
        return f"({name}{rule.offset:+d})"
    return f"{name}{rule.offset:+d}" if rule.offset else name
