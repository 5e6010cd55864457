"""Describes the rules of SFrame and of DWARF CFI in words."""

from __future__ import annotations

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.rules import NoRule, Said
from sframe_unwind.report.notation import describe_register_rule
from sframe_unwind.unwind_rule import RegisterRule
from sframe_unwind.verify.verdict import Words


def words(said: Said, arch: Arch) -> Words:
    """Return the rule of a row in words."""
    if isinstance(said, NoRule):
        return Words(said.why, "", "")
    if said.cfa is None:
        return Words("", "undefined", "")
    ra = _register(said.ra, arch) + (", signed" if said.ra_signed else "")
    return Words(_register(said.cfa, arch), ra, _register(said.fp, arch))


def _register(rule: RegisterRule | None, arch: Arch) -> str:
    return "unchanged" if rule is None else describe_register_rule(rule, arch)
