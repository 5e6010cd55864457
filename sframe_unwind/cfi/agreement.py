"""Whether two rules give the same caller: how a frame's owner is chosen where there is both SFrame and CFI."""

from __future__ import annotations

from sframe_unwind.arch import Arch
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule


def agrees(sframe_rule: UnwindRule, cfi_rule: UnwindRule, arch: Arch) -> bool:
    """Return whether two rules give the same CFA, return address and frame pointer in every frame.

    What SFrame does not track, registers other than these, is not compared.
    """
    if sframe_rule.cfa is None or cfi_rule.cfa is None:
        return sframe_rule.cfa is None and cfi_rule.cfa is None  # both: the outermost frame
    return (
        sframe_rule.cfa == cfi_rule.cfa
        and sframe_rule.ra_signed == cfi_rule.ra_signed
        and same_value(sframe_rule.ra, cfi_rule.ra, arch.ra)
        and same_value(sframe_rule.fp, cfi_rule.fp, arch.fp)
    )


def same_value(one: RegisterRule | None, other: RegisterRule | None, register: int | None) -> bool:
    """Return whether two rules give the same value.

    :param register: where the value still is if there is no rule, by its DWARF number; ``None``: in no register.
    """
    if one == other:
        return True
    unchanged = None if register is None else RegisterRule(register, 0, False)
    return (one or unchanged) == (other or unchanged)
