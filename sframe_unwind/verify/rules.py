"""Describes the rules of SFrame and of DWARF CFI in words."""

from __future__ import annotations

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.rules import NoRule, Said
from sframe_unwind.report.rule_cells import in_words
from sframe_unwind.verify.verdict import Words


def words(said: Said, arch: Arch) -> Words:
    """Return the rule of a row in words."""
    if isinstance(said, NoRule):
        return Words(said.why, "", "")
    return Words(*in_words(said, arch))
