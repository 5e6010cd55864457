"""Rows of flexible FDEs, version 3 (binutils 2.46): the conversion between data words and rules.

A flexible row computes CFA, RA and FP, in this order, from any register, with or without a read from memory.  Each
takes a pair of data words: control word and offset.  For RA and FP, a single word 0 means that the row does not track
the register.  Control words are unsigned, offsets signed; both have the word size of the row.  On s390x, the offset of
the CFA is scaled as in default rows.
"""

from __future__ import annotations

from sframe_unwind.arch import Arch
from sframe_unwind.errors import EncodeError, FormatError
from sframe_unwind.sframe.constants import ARCH_BY_ABI
from sframe_unwind.sframe.row_context import RowContext, cfa_offset, cfa_word, fixed, text
from sframe_unwind.unwind_rule import CFA, RegisterRule, UnwindRule

_NOT_TRACKED = 0
"""The data word of a register that the row does not track."""
_REGISTER = 0x1
_IN_MEMORY = 0x2


def to_rule(context: RowContext, word_size: int, words: tuple[int, ...]) -> UnwindRule:
    """Return the rule of a flexible row.

    :param word_size: size of a data word in bytes; control words are reinterpreted as unsigned words of this size.
    :param words: the data words, signed.
    :raises FormatError: data words are missing or left over, or the base of the CFA is the CFA.
    """
    mask = (1 << 8 * word_size) - 1
    cfa, rest = _decode(words, mask)
    if cfa is None or cfa.base == CFA:
        raise FormatError("flexible row whose CFA is based on the CFA itself")
    cfa = cfa._replace(offset=cfa_offset(ARCH_BY_ABI[context.abi], cfa.offset))
    ra, rest = _decode(rest, mask)
    fp, rest = _decode(rest, mask)
    if rest:
        raise FormatError(f"flexible row with {len(rest)} of {len(words)} data words left over")
    return UnwindRule(cfa, ra or fixed(context.fixed_ra_offset), fp or fixed(context.fixed_fp_offset))


def to_words(context: RowContext, rule: UnwindRule) -> list[tuple[int, bool]]:
    """Return the data words of the flexible row for a rule, each with its signedness; control words are unsigned.

    :param rule: a rule with a CFA.
    :raises EncodeError: a flexible row cannot express the rule.
    """
    arch, cfa = ARCH_BY_ABI[context.abi], rule.cfa
    if cfa is None or cfa.base == CFA:
        raise EncodeError("CFA based on the CFA itself, expected a register")
    words = _encode(arch, "CFA", cfa._replace(offset=cfa_word(arch, cfa)))
    for what, value, offset in (("RA", rule.ra, context.fixed_ra_offset), ("FP", rule.fp, context.fixed_fp_offset)):
        if value == fixed(offset):
            words.append((_NOT_TRACKED, False))
        elif value is None:
            raise EncodeError(f"{what} not saved, but the header says that it is always at CFA{offset:+}")
        else:
            words += _encode(arch, what, value)
    while words[-1] == (_NOT_TRACKED, False):
        words.pop()
    return words


def _decode(words: tuple[int, ...], mask: int) -> tuple[RegisterRule | None, tuple[int, ...]]:
    """Return the rule that the words begin with (``None``: not tracked), and the remaining words."""
    if not words:
        return None, words
    control = words[0] & mask
    if control == _NOT_TRACKED:
        return None, words[1:]
    if len(words) < 2:
        raise FormatError(f"flexible row ends after control word {control:#x}, expected its offset")
    base = control >> 3 if control & _REGISTER else CFA
    return RegisterRule(base, words[1], bool(control & _IN_MEMORY)), words[2:]


def _encode(arch: Arch, what: str, rule: RegisterRule) -> list[tuple[int, bool]]:
    register = 0 if rule.base == CFA else rule.base << 3 | _REGISTER
    control = register | (_IN_MEMORY if rule.in_memory else 0)
    if control == _NOT_TRACKED:
        raise EncodeError(f"{what} {text(arch, rule)}, whose control word would be 0, which stands for not tracked")
    return [(control, False), (rule.offset, True)]
