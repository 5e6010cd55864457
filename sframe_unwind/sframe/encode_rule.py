"""Converts rules to row descriptions for the encoder.  The reverse is :mod:`sframe_unwind.sframe.rules`."""

from __future__ import annotations

from collections.abc import Iterable

from sframe_unwind.errors import EncodeError
from sframe_unwind.sframe import default_row, flex_row
from sframe_unwind.sframe.constants import ARCH_BY_ABI, FEATURES, FdeType
from sframe_unwind.sframe.encode import FunctionSpec, RowSpec, TableSpec, fits
from sframe_unwind.sframe.raw import WORD_SIZES
from sframe_unwind.unwind_rule import UnwindRule


def function(table: TableSpec, start: int, size: int, rules: Iterable[tuple[int, UnwindRule]]) -> FunctionSpec:
    """Return the description of a function with the given rules.

    The result is a default FDE if default rows can express all rules, else a flexible FDE (version 3).

    :param table: supplies version, ABI and fixed offsets; its functions are ignored.
    :param start: address of the first byte of the function.
    :param size: length of the function in bytes.
    :param rules: start offset (in bytes from ``start``) and rule of each row.
    :raises EncodeError: the version and ABI cannot express one of the rules.
    """
    pairs = list(rules)
    kinds = (FdeType.DEFAULT, FdeType.FLEX) if FEATURES[table.version].flexible else (FdeType.DEFAULT,)
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
    """Return the row for a rule, with the smallest data words that hold it.

    :param table: supplies version, ABI and fixed offsets.
    :param start: start offset of the row, in bytes from the start of the function.
    :raises EncodeError: a row of type ``fde_type`` cannot express the rule in that version and ABI.
    """
    kind = "flexible" if fde_type is FdeType.FLEX else "default"
    where = f"row at {start:#x}: {kind} row of {ARCH_BY_ABI[table.abi].name}, version {table.version}"
    try:
        info, words = info_and_words(table, rule, fde_type)
    except EncodeError as error:
        raise EncodeError(f"{where}: {error}") from None
    return RowSpec(start, info, words)


def info_and_words(table: TableSpec, rule: UnwindRule, fde_type: FdeType) -> tuple[int, tuple[int, ...]]:
    """Return the info byte and the data words of the row for a rule, with the smallest data words that hold it.

    :param table: supplies version, ABI and fixed offsets.
    :raises EncodeError: a row of type ``fde_type`` cannot express the rule in that version and ABI.
    """
    arch = ARCH_BY_ABI[table.abi]
    if fde_type is FdeType.FLEX and not FEATURES[table.version].flexible:
        raise EncodeError("flexible rows exist from version 3")
    if rule.ra_signed and not arch.pac_mask:
        raise EncodeError("signed return address, which only AArch64 has")
    if rule.cfa is None:
        if rule.ra or rule.fp or rule.ra_signed:
            raise EncodeError("the return address is undefined, expected no other register rule")
        return 0, ()
    signed = 0x80 if rule.ra_signed else 0
    if fde_type is FdeType.FLEX:
        pairs = flex_row.to_words(table, rule)
        size = _smallest(pairs)
        top = 1 << 8 * size - 1
        words = tuple(word if is_signed or word < top else word - 2 * top for word, is_signed in pairs)
        return _info(words, size) | signed, words
    words = default_row.to_words(table, rule)
    size = _smallest([(word, True) for word in words])
    return _info(words, size) | signed | (rule.cfa.base == arch.sp), words


def _smallest(words: Iterable[tuple[int, bool]]) -> int:
    """Return the smallest word size, in bytes, that holds all of the words.  Each word comes with its signedness."""
    pairs = list(words)
    for size in WORD_SIZES:
        if all(fits(word, size, signed) for word, signed in pairs):
            return size
    raise EncodeError(f"data words {', '.join(str(word) for word, _ in pairs)} do not fit in 4 bytes each")


def _info(words: tuple[int, ...], size: int) -> int:
    return WORD_SIZES.index(size) << 5 | len(words) << 1
