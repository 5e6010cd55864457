"""Why SFrame does not describe a function that DWARF CFI describes.

There are two kinds of reasons: a version of SFrame cannot express a rule, or GNU as leaves a function out when it does
not translate one of its CFI directives.  The latter are in ``gas/gen-sframe.c`` of binutils 2.47; the assembler prints
each in a warning ("no SFrame FDE emitted").
"""

from __future__ import annotations

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.records import CfiFunction
from sframe_unwind.elf.cfi import CfiProblem
from sframe_unwind.errors import FormatError, UnsupportedExpressionError
from sframe_unwind.report.notation import describe_register_rule
from sframe_unwind.sframe.constants import ARCH_BY_ABI, FEATURES, GNU_AS_WRITES_FLEXIBLE, MAX_ROWS
from sframe_unwind.unwind_rule import CFA, COMPUTED, UNDEFINED, RegisterRule, UnwindRule
from sframe_unwind.verify.untranslated import untranslated, window_save


def why_left_out(described: CfiFunction | CfiProblem, arch: Arch, version: int) -> str:
    """Return why SFrame does not describe a function, whether or not its CFI can be decoded; empty: not known."""
    return reason_unread(described, arch) if isinstance(described, CfiProblem) else reason(described, arch, version)


def reason(described: CfiFunction, arch: Arch, version: int) -> str:
    """Return why SFrame does not describe a function; empty: SFrame could express all of its rules.

    :param version: version of SFrame.
    """
    if described.cie.signal:
        # A version that marks signal trampolines does so even without rows, if necessary.
        return "" if FEATURES[version].signal else f"a signal trampoline, which version {version} cannot mark"
    column, usual = described.cie.return_column, arch.return_column
    if column != usual:
        return f"return address in column {arch.register_name(column)}, expected {arch.register_name(usual)}"
    if len(described.rows) > MAX_ROWS:
        return f"{len(described.rows):,} rows, more than the {MAX_ROWS:,} that a function may have"
    why = _of_rows(described, arch, version)
    # CFI that is computed from the pc was written by a linker, for a PLT; no assembler has translated it.
    return why or ("" if any(row.depends_on_pc for row in described.rows) else untranslated(described, arch))


def reason_unread(problem: CfiProblem, arch: Arch) -> str:
    """Return why SFrame does not describe a function whose CFI cannot be decoded; empty: not known."""
    return window_save(problem.code, arch)


def _of_rows(described: CfiFunction, arch: Arch, version: int) -> str:
    for offset, row in zip(described.offsets, described.rows):
        pc = described.start + offset
        try:
            rule = row.rule(arch, described.cie.return_column, pc)
            if rule.fp == COMPUTED and (source := row.source(arch.fp)) is not None:
                row.place(source, arch, pc)
        except UnsupportedExpressionError as error:
            return f"computed: {error}"
        except FormatError:  # a row without a CFA, or a malformed expression: the reason can be in other rows
            continue
        if rule.fp == UNDEFINED:
            return f"{arch.register_name(arch.fp)} cannot be restored"
        if why := rule.cfa and (_not_in_version(rule, arch, version) or _fp_alone(rule, arch)):
            return why
    return ""


def _not_in_version(rule: UnwindRule, arch: Arch, version: int) -> str:
    cfa = rule.cfa
    flexible = FEATURES[version].flexible
    if cfa is None or (flexible and _has_flexible(arch)):
        return ""
    lack = f"GNU as has no words on {arch.name}" if flexible else f"version {version} has no words"
    if cfa.in_memory or cfa.base not in (arch.sp, arch.fp):
        return f"CFA {describe_register_rule(cfa, arch)}, for which {lack}"
    for place in (rule.ra, rule.fp):
        if place is not None and not _is_saved(place):
            what = "a value that is a place" if place.base == CFA else "a value in a register"
            return f"{what}, for which {lack}"
    return ""


def _fp_alone(rule: UnwindRule, arch: Arch) -> str:
    # AArch64's rows have FP after RA, and no padding (V2 errata 1, 3.2).  Those of s390x have padding.  AMD64's RA has
    # a fixed place.
    if not _has_flexible(arch) and rule.fp is not None and rule.ra is None:
        return f"{arch.register_name(arch.fp)} is saved, but the return address is not"
    return ""


def _has_flexible(arch: Arch) -> bool:
    return any(ARCH_BY_ABI[abi] is arch for abi in GNU_AS_WRITES_FLEXIBLE)


def _is_saved(place: RegisterRule) -> bool:
    return place.base == CFA and place.in_memory
