"""From rules to the rows that say them, for the encoder; the reverse of :mod:`sframe_unwind.sframe.rules`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable

from sframe_unwind.arch import ABIS, Abi
from sframe_unwind.arch.s390x import RA_NOT_SAVED
from sframe_unwind.errors import EncodeError
from sframe_unwind.sframe.constants import AbiNumber, FdeType
from sframe_unwind.sframe.encode import FunctionSpec, RowSpec, TableSpec, fits
from sframe_unwind.sframe.fre import WORD_SIZES
from sframe_unwind.unwind_rule import CFA, RegisterRule, UnwindRule, saved_at_cfa

_NOT_TRACKED = 0
"""The padding word of flexible rows."""
_REGISTER = 0x1
_IN_MEMORY = 0x2


def function(table: TableSpec, start: int, size: int, rules: Iterable[tuple[int, UnwindRule]]) -> FunctionSpec:
    """Describe a function by its rules: a default FDE where that can say them all, or else a flexible one.

    :param table: whose version, ABI and fixed offsets apply; its functions do not matter.
    :param rules: start offset and rule of each row.
    :raises EncodeError: the version and ABI cannot say one of the rules.
    """
    pairs = list(rules)
    kinds = (FdeType.DEFAULT, FdeType.FLEX) if table.version == 3 else (FdeType.DEFAULT,)
    reasons = []
    for kind in kinds:
        try:
            rows = tuple(row(table, offset, rule, kind) for offset, rule in pairs)
        except EncodeError as error:
            reasons.append(str(error))
        else:
            return FunctionSpec(start, size, rows, fde_type=kind)
    raise EncodeError(f"function at {start:#x}: {'; '.join(reasons)}")


def row(table: TableSpec, start: int, rule: UnwindRule, fde_type: FdeType = FdeType.DEFAULT) -> RowSpec:
    """Return the row that says a rule, with the smallest words that hold it.

    :param table: whose version, ABI and fixed offsets apply.
    :param start: offset of the row.
    :raises EncodeError: a row of that kind cannot say the rule in that version and ABI.
    """
    abi = ABIS[table.abi]
    kind = "flexible" if fde_type is FdeType.FLEX else "default"
    where = f"row at {start:#x}: {kind} row of {abi.name}, version {table.version}"
    try:
        info, words = _row(table, abi, rule, fde_type)
    except EncodeError as error:
        raise EncodeError(f"{where}: {error}") from None
    return RowSpec(start, info, words)


def _row(table: TableSpec, abi: Abi, rule: UnwindRule, fde_type: FdeType) -> tuple[int, tuple[int, ...]]:
    if fde_type is FdeType.FLEX and table.version < 3:
        raise EncodeError("flexible rows exist from version 3")
    if rule.ra_signed and not abi.pac_mask:
        raise EncodeError("signed return address, which only AArch64 has")
    if rule.cfa is None:
        if rule.ra or rule.fp or rule.ra_signed:
            raise EncodeError("return address undefined, expected no other place beside it")
        return 0, ()
    signed = 0x80 if rule.ra_signed else 0
    if fde_type is FdeType.FLEX:
        size, words = _flexible_words(table, rule.cfa, rule)
        return _info(words, size) | signed, words
    if rule.cfa.in_memory or rule.cfa.base not in (abi.sp, abi.fp):
        raise EncodeError(f"CFA {_text(abi, rule.cfa)}, expected SP or FP plus an offset")
    words = _DEFAULT_WORDS[table.abi](table, abi, rule.cfa, rule)
    size = _smallest([(word, True) for word in words])
    return _info(words, size) | signed | (rule.cfa.base == abi.sp), words


def _amd64_words(table: TableSpec, abi: Abi, cfa: RegisterRule, rule: UnwindRule) -> tuple[int, ...]:
    if not table.fixed_ra_offset:
        raise EncodeError("header without a fixed return address offset, expected -8")
    if rule.ra != saved_at_cfa(table.fixed_ra_offset):
        raise EncodeError(f"RA {_text(abi, rule.ra)}, expected {_text(abi, saved_at_cfa(table.fixed_ra_offset))}")
    if rule.fp == _fixed(table.fixed_fp_offset):
        return (_cfa_word(abi, cfa),)
    return _cfa_word(abi, cfa), _saved(abi, "FP", rule.fp)


def _aarch64_words(table: TableSpec, abi: Abi, cfa: RegisterRule, rule: UnwindRule) -> tuple[int, ...]:
    fp_fixed = rule.fp == _fixed(table.fixed_fp_offset)
    if fp_fixed and rule.ra == _fixed(table.fixed_ra_offset):
        return (_cfa_word(abi, cfa),)
    ra = _saved(abi, "RA", rule.ra)
    return (_cfa_word(abi, cfa), ra) if fp_fixed else (_cfa_word(abi, cfa), ra, _saved(abi, "FP", rule.fp))


def _s390x_words(table: TableSpec, abi: Abi, cfa: RegisterRule, rule: UnwindRule) -> tuple[int, ...]:
    ra = RA_NOT_SAVED if rule.ra is None else _saved_or_register(table, abi, "RA", rule.ra)
    if rule.fp is not None:
        return _cfa_word(abi, cfa), ra, _saved_or_register(table, abi, "FP", rule.fp)
    return (_cfa_word(abi, cfa),) if rule.ra is None else (_cfa_word(abi, cfa), ra)


_DEFAULT_WORDS: dict[AbiNumber, Callable[[TableSpec, Abi, RegisterRule, UnwindRule], tuple[int, ...]]] = {
    AbiNumber.AMD64_ENDIAN_LITTLE: _amd64_words,
    AbiNumber.AARCH64_ENDIAN_LITTLE: _aarch64_words,
    AbiNumber.AARCH64_ENDIAN_BIG: _aarch64_words,
    AbiNumber.S390X_ENDIAN_BIG: _s390x_words,
}


def _cfa_word(abi: Abi, cfa: RegisterRule) -> int:
    """Return the data word for the offset of a CFA, in rows of either type."""
    word, left = divmod(cfa.offset - abi.cfa_adjustment, abi.cfa_scale)
    if left:
        raise EncodeError(f"CFA offset {cfa.offset}, expected {abi.cfa_adjustment} plus a multiple of {abi.cfa_scale}")
    return word


def _saved(abi: Abi, what: str, place: RegisterRule | None) -> int:
    """Return the offset from the CFA of a saved register, in the one way that default rows have."""
    if place is None or place.base != CFA or not place.in_memory or not place.offset:
        raise EncodeError(f"{what} {_text(abi, place)}, expected saved at the CFA plus an offset other than 0")
    return place.offset


def _saved_or_register(table: TableSpec, abi: Abi, what: str, place: RegisterRule) -> int:
    if table.version == 2 and place.base >= 0 and not place.in_memory and not place.offset:
        return place.base << 1 | 1
    offset = _saved(abi, what, place)
    if offset & 1:
        raise EncodeError(f"{what} {_text(abi, place)}, expected an even offset")
    return offset


def _flexible_words(table: TableSpec, cfa: RegisterRule, rule: UnwindRule) -> tuple[int, tuple[int, ...]]:
    abi = ABIS[table.abi]
    if cfa.base == CFA:
        raise EncodeError("CFA based on the CFA itself, expected a register")
    # Whether a word is signed stands beside it: control words are not.
    pairs = _flexible_place(abi, "CFA", cfa._replace(offset=_cfa_word(abi, cfa)))
    for what, place, fixed in (("RA", rule.ra, table.fixed_ra_offset), ("FP", rule.fp, table.fixed_fp_offset)):
        if place == _fixed(fixed):
            pairs.append((_NOT_TRACKED, False))
        elif place is None:
            raise EncodeError(f"{what} not saved, but the header says that it is always at CFA{fixed:+}")
        else:
            pairs += _flexible_place(abi, what, place)
    while pairs[-1] == (_NOT_TRACKED, False):
        pairs.pop()
    size = _smallest(pairs)
    top = 1 << 8 * size - 1
    return size, tuple(word if signed or word < top else word - 2 * top for word, signed in pairs)


def _flexible_place(abi: Abi, what: str, place: RegisterRule) -> list[tuple[int, bool]]:
    register = 0 if place.base == CFA else place.base << 3 | _REGISTER
    control = register | (_IN_MEMORY if place.in_memory else 0)
    if control == _NOT_TRACKED:
        raise EncodeError(f"{what} {_text(abi, place)}, whose control word would be 0, which stands for not tracked")
    return [(control, False), (place.offset, True)]


def _smallest(words: Iterable[tuple[int, bool]]) -> int:
    """Return the length in bytes of the smallest words that hold these, each with whether it is signed."""
    pairs = list(words)
    for size in WORD_SIZES:
        if all(fits(word, size, signed) for word, signed in pairs):
            return size
    raise EncodeError(f"data words {', '.join(str(word) for word, _ in pairs)} do not fit in 4 bytes each")


def _info(words: tuple[int, ...], size: int) -> int:
    return WORD_SIZES.index(size) << 5 | len(words) << 1


def _fixed(offset: int) -> RegisterRule | None:
    """Return the place that a fixed offset of the header stands for."""
    return saved_at_cfa(offset) if offset else None


def _text(abi: Abi, place: RegisterRule | None) -> str:
    if place is None:
        return "not saved"
    base = "CFA" if place.base == CFA else abi.register_name(place.base)
    text = f"{base}{place.offset:+}"
    return f"[{text}]" if place.in_memory else text
