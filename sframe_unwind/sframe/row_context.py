"""The fields of the header on which the meaning of a row depends, in default and in flexible FDEs."""

from __future__ import annotations

from typing import Protocol

from sframe_unwind.arch import Arch, s390x
from sframe_unwind.errors import EncodeError
from sframe_unwind.sframe.constants import AbiNumber
from sframe_unwind.unwind_rule import CFA, RegisterRule, saved_at_cfa

_S390X_CFA_ADJUSTMENT = 160
_S390X_CFA_ALIGNMENT = 8
"""``SFRAME_S390X_CFA_OFFSET_ALIGNMENT_FACTOR``: the divisor of stored CFA offsets (V2 errata 1, 3.3)."""


class RowContext(Protocol):
    """The header fields that rows depend on; decoded headers and descriptions of tables have them."""

    @property
    def version(self) -> int: ...

    @property
    def abi(self) -> AbiNumber: ...

    @property
    def fixed_fp_offset(self) -> int: ...

    @property
    def fixed_ra_offset(self) -> int: ...


def cfa_offset(arch: Arch, word: int) -> int:
    """Return the CFA offset in bytes that a data word encodes (for s390x: V2 errata 1, 3.3)."""
    return word * _S390X_CFA_ALIGNMENT + _S390X_CFA_ADJUSTMENT if arch is s390x.ARCH else word


def cfa_word(arch: Arch, cfa: RegisterRule) -> int:
    """Return the data word for the offset of a CFA.

    :raises EncodeError: the offset has no encoding.
    """
    if arch is not s390x.ARCH:
        return cfa.offset
    word, left = divmod(cfa.offset - _S390X_CFA_ADJUSTMENT, _S390X_CFA_ALIGNMENT)
    if left:
        expected = f"{_S390X_CFA_ADJUSTMENT} plus a multiple of {_S390X_CFA_ALIGNMENT}"
        raise EncodeError(f"CFA offset {cfa.offset}, expected {expected}")
    return word


def fixed(offset: int) -> RegisterRule | None:
    """Return the rule for a fixed offset of the header (bytes from the CFA); ``None`` for 0."""
    return saved_at_cfa(offset) if offset else None


def text(arch: Arch, rule: RegisterRule | None) -> str:
    """Return a rule as text for error messages, such as ``[CFA-8]``."""
    if rule is None:
        return "not saved"
    base = "CFA" if rule.base == CFA else arch.register_name(rule.base)
    value = f"{base}{rule.offset:+}"
    return f"[{value}]" if rule.in_memory else value
