"""Decides whether two rules give the same caller, to choose the unwinder of a frame that has both SFrame and CFI."""

from __future__ import annotations

from sframe_unwind.arch import Arch
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule


def agrees(sframe: UnwindRule, cfi: UnwindRule, arch: Arch) -> bool:
    """Return whether two rules give the same CFA, return address and frame pointer in every frame."""
    return not differences(sframe, cfi, arch)


def differences(sframe: UnwindRule, cfi: UnwindRule, arch: Arch) -> tuple[str, ...]:
    """Return the values, of ``cfa``, ``ra`` and ``fp``, in which two rules differ.

    Registers other than these, which SFrame does not track, are not compared.
    """
    if sframe.ra_undefined or cfi.ra_undefined:  # the outermost frame: there is nothing else to compare
        return () if sframe.ra_undefined and cfi.ra_undefined else ("ra",)
    same = {
        "cfa": sframe.cfa == cfi.cfa,
        "ra": sframe.ra_signed == cfi.ra_signed and _same_value(sframe.ra, cfi.ra, arch.ra),
        "fp": _same_value(sframe.fp, cfi.fp, arch.fp),
    }
    return tuple(what for what, is_same in same.items() if not is_same)


def _same_value(one: RegisterRule | None, other: RegisterRule | None, register: int | None) -> bool:
    """Return whether two rules give the same value.

    :param register: DWARF number of the register that has the value if there is no rule; ``None``: no register has it.
    """
    if one == other:
        return True
    unchanged = None if register is None else RegisterRule(register, 0, False)
    return (one or unchanged) == (other or unchanged)
