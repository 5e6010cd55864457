"""Descriptions of functions that tests translate."""

from __future__ import annotations

from sframe_unwind.arch.amd64 import SP
from sframe_unwind.sframe.constants import PauthKey
from sframe_unwind.translation.description import Description
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa

RULE = UnwindRule(RegisterRule(SP, 8, False), saved_at_cfa(-8), None)
"""The rule of the first instruction on AMD64."""


def description(*rules: tuple[int, object], start: int = 0x1000, size: int = 32, signal: bool = False) -> Description:
    """Return the description of a function with rules at some offsets.

    :param rules: pairs of an offset and an :class:`UnwindRule` or a :class:`NoRule`.
    """
    offsets, said = zip(*rules)
    return Description(start, start + size, (list(offsets), list(said)), signal, PauthKey.A)
