"""Why SFrame does not describe a function that DWARF CFI describes."""

from __future__ import annotations

from sframe_unwind.arch import Arch
from sframe_unwind.dwarf.cfi import CfiFunction
from sframe_unwind.dwarf.expression import UnsupportedExpressionError
from sframe_unwind.dwarf.file import Cfi
from sframe_unwind.report.notation import place_words
from sframe_unwind.unwind_rule import CFA


def reason(cfi: Cfi, described: CfiFunction, arch: Arch, version: int) -> str:
    """Return what in a function's CFI SFrame has no words for; empty where all of it could be said.

    :param version: of SFrame.
    """
    if described.signal and version < 3:
        return f"a signal trampoline, which version {version} cannot mark"
    for pc, row in zip(described.starts, described.rows):
        try:
            rule = cfi.rule(row, pc)
        except UnsupportedExpressionError as error:
            return f"computed: {error}"
        cfa = rule.cfa
        if cfa is None or version >= 3:
            continue
        if cfa.in_memory or cfa.base not in (arch.sp, arch.fp):
            return f"CFA {place_words(cfa, arch)}, for which version {version} has no words"
        if any(place is not None and not (place.base == CFA and place.in_memory) for place in (rule.ra, rule.fp)):
            return f"a value in a register, for which version {version} has no words"
    return ""
