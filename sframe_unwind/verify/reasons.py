"""Why SFrame does not describe a function that DWARF CFI describes."""

from __future__ import annotations

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.records import CfiFunction
from sframe_unwind.errors import UnsupportedExpressionError
from sframe_unwind.report.notation import describe_register_rule
from sframe_unwind.unwind_rule import CFA, COMPUTED, UNDEFINED, RegisterRule


def reason(described: CfiFunction, arch: Arch, version: int) -> str:
    """Return what in a function's CFI SFrame has no words for; empty where all of it could be said.

    :param version: of SFrame.
    """
    if described.cie.signal and version < 3:
        return f"a signal trampoline, which version {version} cannot mark"
    for offset, row in zip(described.offsets, described.rows):
        pc = described.start + offset
        try:
            rule = row.rule(arch, described.cie.return_column, pc)
            if rule.fp == COMPUTED and (source := row.source(arch.fp)) is not None:
                row.place(source, arch, pc)
        except UnsupportedExpressionError as error:
            return f"computed: {error}"
        if rule.fp == UNDEFINED:
            return f"{arch.register_name(arch.fp)} cannot be restored"
        why = _not_in_version(rule.cfa, (rule.ra, rule.fp), arch, version) if rule.cfa and version < 3 else ""
        if why:
            return why
    return ""


def _not_in_version(
    cfa: RegisterRule, saved: tuple[RegisterRule | None, ...], arch: Arch, version: int
) -> str:
    if cfa.in_memory or cfa.base not in (arch.sp, arch.fp):
        return f"CFA {describe_register_rule(cfa, arch)}, for which version {version} has no words"
    if any(place is not None and not (place.base == CFA and place.in_memory) for place in saved):
        return f"a value in a register, for which version {version} has no words"
    return ""
