"""Rows of default FDEs: the conversion between data words and rules, for each ABI.

V2 errata 1, section 3 defines AMD64, AArch64 and s390x.  Where another version differs, the function states it.
"""

from __future__ import annotations

from typing import Callable

from sframe_unwind.arch import Arch
from sframe_unwind.errors import EncodeError, FormatError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.constants import ARCH_BY_ABI, FEATURES, AbiNumber
from sframe_unwind.sframe.row_context import RowContext, cfa_offset, cfa_word, fixed, text
from sframe_unwind.unwind_rule import CFA, RegisterRule, UnwindRule, saved_at_cfa

FIXED_RA_FIELD = 6
"""Offset of the field ``sfh_cfa_fixed_ra_offset`` in the header, in bytes."""

S390X_RA_NOT_SAVED = 0
"""``SFRAME_FRE_RA_OFFSET_INVALID``: the RA is not saved.  The word is present so that the FP word can follow."""


def to_rule(context: RowContext, base_is_sp: bool, words: tuple[int, ...]) -> UnwindRule:
    """Return the rule of a default row.

    :param base_is_sp: the CFA is computed from SP; otherwise from FP.
    :param words: the data words, signed; at least one.
    :raises FormatError: there are too many data words, or the ABI does not define the value of one.
    """
    arch = ARCH_BY_ABI[context.abi]
    base = arch.sp if base_is_sp else arch.fp
    return _CODECS[context.abi].decode(context, RegisterRule(base, cfa_offset(arch, words[0]), False), words)


def to_words(context: RowContext, rule: UnwindRule) -> tuple[int, ...]:
    """Return the data words of the default row for a rule, signed.

    :param rule: a rule with a CFA.
    :raises EncodeError: a default row of that version and ABI cannot express the rule.
    """
    arch, cfa = ARCH_BY_ABI[context.abi], rule.cfa
    if cfa is None or cfa.in_memory or cfa.base not in (arch.sp, arch.fp):
        raise EncodeError(f"CFA {text(arch, cfa)}, expected SP or FP plus an offset")
    return (cfa_word(arch, cfa), *_CODECS[context.abi].encode(context, arch, rule))


def saved_register(context: RowContext, word: int) -> int | None:
    """Return the DWARF register that the data word of RA or FP names; ``None``: the word is an offset from the CFA.

    Only version 2 for s390x names registers, in odd data words (V2 errata 1, 3.3).
    """
    is_register = context.abi is AbiNumber.S390X_ENDIAN_BIG and FEATURES[context.version].s390x_registers and word & 1
    return word >> 1 if is_register else None


class _Codec(NamedTuple):
    """The default rows of one ABI.

    ``decode`` makes a rule of the CFA's rule and all data words; ``encode`` returns the data words after the first.
    """

    decode: Callable[[RowContext, RegisterRule, tuple[int, ...]], UnwindRule]
    encode: Callable[[RowContext, Arch, UnwindRule], tuple[int, ...]]


def _decode_amd64(context: RowContext, cfa: RegisterRule, words: tuple[int, ...]) -> UnwindRule:
    """``CFA = base + w1``, ``FP at CFA + w2``; RA at the fixed offset of the header (V2 errata 1, 3.1)."""
    if not context.fixed_ra_offset:
        raise FormatError("AMD64 header without a fixed return address offset, expected -8", FIXED_RA_FIELD)
    if len(words) > 2:
        raise FormatError(f"AMD64 row with {len(words)} data words, expected 1 or 2")
    fp = words[1] if len(words) > 1 else context.fixed_fp_offset
    return UnwindRule(cfa, saved_at_cfa(context.fixed_ra_offset), fixed(fp))


def _encode_amd64(context: RowContext, arch: Arch, rule: UnwindRule) -> tuple[int, ...]:
    ra = fixed(context.fixed_ra_offset)
    if ra is None:
        raise EncodeError("header without a fixed return address offset, expected -8")
    if rule.ra != ra:
        raise EncodeError(f"RA {text(arch, rule.ra)}, expected {text(arch, ra)}")
    return () if rule.fp == fixed(context.fixed_fp_offset) else (_saved(arch, "FP", rule.fp),)


def _decode_aarch64(context: RowContext, cfa: RegisterRule, words: tuple[int, ...]) -> UnwindRule:
    """``CFA = base + w1``, ``RA at CFA + w2``, ``FP at CFA + w3`` (V2 errata 1, 3.2)."""
    if len(words) > 3:
        raise FormatError(f"AArch64 row with {len(words)} data words, expected 1 to 3")
    ra = words[1] if len(words) > 1 else context.fixed_ra_offset
    fp = words[2] if len(words) > 2 else context.fixed_fp_offset
    return UnwindRule(cfa, fixed(ra), fixed(fp))


def _encode_aarch64(context: RowContext, arch: Arch, rule: UnwindRule) -> tuple[int, ...]:
    fp_fixed = rule.fp == fixed(context.fixed_fp_offset)
    if fp_fixed and rule.ra == fixed(context.fixed_ra_offset):
        return ()
    ra = _saved(arch, "RA", rule.ra)
    return (ra,) if fp_fixed else (ra, _saved(arch, "FP", rule.fp))


def _decode_s390x(context: RowContext, cfa: RegisterRule, words: tuple[int, ...]) -> UnwindRule:
    """``CFA = base + w1 * 8 + 160``, ``RA at CFA + w2``, ``FP at CFA + w3`` (V2 errata 1, 3.3).

    In version 2, an odd word w2 or w3 means that the value is in register ``w >> 1``.
    """
    if len(words) > 3:
        raise FormatError(f"s390x row with {len(words)} data words, expected 1 to 3")
    ra = words[1] if len(words) > 1 else S390X_RA_NOT_SAVED
    return UnwindRule(
        cfa,
        None if ra == S390X_RA_NOT_SAVED else _s390x_location(context, ra),
        _s390x_location(context, words[2]) if len(words) > 2 else None,
    )


def _s390x_location(context: RowContext, word: int) -> RegisterRule:
    if not word & 1:
        return saved_at_cfa(word)
    register = saved_register(context, word)
    if register is None:
        raise FormatError(f"s390x row with the odd offset {word}, but version {context.version} has no registers there")
    if register < 0:
        raise FormatError(f"s390x row with the negative register number {register}")
    return RegisterRule(register, 0, False)


def _encode_s390x(context: RowContext, arch: Arch, rule: UnwindRule) -> tuple[int, ...]:
    ra = S390X_RA_NOT_SAVED if rule.ra is None else _s390x_word(context, arch, "RA", rule.ra)
    if rule.fp is not None:
        return ra, _s390x_word(context, arch, "FP", rule.fp)
    return () if rule.ra is None else (ra,)


def _s390x_word(context: RowContext, arch: Arch, what: str, rule: RegisterRule) -> int:
    is_register = rule.base >= 0 and not rule.in_memory and not rule.offset
    if is_register and FEATURES[context.version].s390x_registers:
        return rule.base << 1 | 1
    offset = _saved(arch, what, rule)
    if offset & 1:
        raise EncodeError(f"{what} {text(arch, rule)}, expected an even offset")
    return offset


def _saved(arch: Arch, what: str, rule: RegisterRule | None) -> int:
    """Return the offset of a saved register from the CFA, in bytes.

    :raises EncodeError: the register is not saved at an offset from the CFA.
    """
    if rule is None or rule.base != CFA or not rule.in_memory or not rule.offset:
        raise EncodeError(f"{what} {text(arch, rule)}, expected saved at the CFA plus an offset other than 0")
    return rule.offset


_CODECS = {
    AbiNumber.AARCH64_ENDIAN_BIG: _Codec(_decode_aarch64, _encode_aarch64),
    AbiNumber.AARCH64_ENDIAN_LITTLE: _Codec(_decode_aarch64, _encode_aarch64),
    AbiNumber.AMD64_ENDIAN_LITTLE: _Codec(_decode_amd64, _encode_amd64),
    AbiNumber.S390X_ENDIAN_BIG: _Codec(_decode_s390x, _encode_s390x),
}
