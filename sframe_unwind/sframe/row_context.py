"""What rows of both FDE types depend on besides their own bytes."""

from __future__ import annotations

from typing import Protocol

from sframe_unwind.arch import Arch, s390x
from sframe_unwind.errors import EncodeError
from sframe_unwind.sframe.constants import AbiNumber
from sframe_unwind.unwind_rule import CFA, RegisterRule, saved_at_cfa

_S390X_CFA_ADJUSTMENT = 160
_S390X_CFA_ALIGNMENT = 8
"""``SFRAME_S390X_CFA_OFFSET_ALIGNMENT_FACTOR``: CFA offsets are stored divided by it, to fit into 8 bits more often."""


class RowContext(Protocol):
    """What a header says for all rows under it: a decoded one, or one that is to be encoded."""

    @property
    def version(self) -> int: ...

    @property
    def abi(self) -> AbiNumber: ...

    @property
    def fixed_fp_offset(self) -> int: ...

    @property
    def fixed_ra_offset(self) -> int: ...


def cfa_offset(arch: Arch, word: int) -> int:
    """Return the offset in bytes that the data word for a CFA's offset stands for (V2 errata 1, 3.3 for s390x)."""
    return word * _S390X_CFA_ALIGNMENT + _S390X_CFA_ADJUSTMENT if arch is s390x.ARCH else word


def cfa_word(arch: Arch, cfa: RegisterRule) -> int:
    """Return the data word for the offset of a CFA.

    :raises EncodeError: there is none.
    """
    if arch is not s390x.ARCH:
        return cfa.offset
    word, left = divmod(cfa.offset - _S390X_CFA_ADJUSTMENT, _S390X_CFA_ALIGNMENT)
    if left:
        expected = f"{_S390X_CFA_ADJUSTMENT} plus a multiple of {_S390X_CFA_ALIGNMENT}"
        raise EncodeError(f"CFA offset {cfa.offset}, expected {expected}")
    return word


def fixed(offset: int) -> RegisterRule | None:
    """Return the rule that a fixed offset of the header stands for; 0 stands for none."""
    return saved_at_cfa(offset) if offset else None


def text(arch: Arch, rule: RegisterRule | None) -> str:
    """Return a rule in the notation of error messages."""
    if rule is None:
        return "not saved"
    base = "CFA" if rule.base == CFA else arch.register_name(rule.base)
    value = f"{base}{rule.offset:+}"
    return f"[{value}]" if rule.in_memory else value
