"""Rows of flexible FDEs (version 3): any register as base, with or without a read from memory.

For CFA, then RA, then FP: either a pair (control word, offset), or for RA and FP one word 0 that says
"not tracked here".  Control words are unsigned, offsets signed, both of the row's word size; the offset of the
CFA is scaled as in default rows (s390x).
"""

from __future__ import annotations

from sframe_unwind.arch.base import Abi
from sframe_unwind.errors import FormatError
from sframe_unwind.sframe.header import Header
from sframe_unwind.unwind_rule import CFA, RegisterRule, UnwindRule, saved_at_cfa

_REGISTER = 0x1
_IN_MEMORY = 0x2


def row(header: Header, abi: Abi, word_size: int, words: tuple[int, ...]) -> UnwindRule:
    """Return the rule of a flexible row.

    :param word_size: length in bytes of a data word, to read control words unsigned.
    :param words: the data words, signed.
    :raises FormatError: words are missing or left over, or the CFA is based on itself.
    """
    mask = (1 << 8 * word_size) - 1
    cfa, rest = _place(words, mask)
    if cfa is None or cfa.base == CFA:
        raise FormatError("flexible row whose CFA is based on the CFA itself")
    cfa = cfa._replace(offset=abi.cfa_offset(cfa.offset))
    ra, rest = _place(rest, mask)
    fp, rest = _place(rest, mask)
    if rest:
        raise FormatError(f"flexible row with {len(rest)} of {len(words)} data words left over")
    if ra is None and header.fixed_ra_offset:
        ra = saved_at_cfa(header.fixed_ra_offset)
    if fp is None and header.fixed_fp_offset:
        fp = saved_at_cfa(header.fixed_fp_offset)
    return UnwindRule(cfa, ra, fp)


def _place(words: tuple[int, ...], mask: int) -> tuple[RegisterRule | None, tuple[int, ...]]:
    """Return the first place and the words behind it; ``None`` where it is not tracked."""
    if not words:
        return None, words
    control = words[0] & mask
    if control == 0:
        return None, words[1:]
    if len(words) < 2:
        raise FormatError(f"flexible row ends after control word {control:#x}, expected its offset")
    base = control >> 3 if control & _REGISTER else CFA
    return RegisterRule(base, words[1], bool(control & _IN_MEMORY)), words[2:]
