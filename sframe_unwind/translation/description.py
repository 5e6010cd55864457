"""The rules of one function, decoded from any kind of table."""

from __future__ import annotations

from sframe_unwind.cfi.records import CfiFunction
from sframe_unwind.cfi.rules import CfiRules
from sframe_unwind.errors import FormatError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.constants import PauthKey, PcType
from sframe_unwind.sframe.listing import unrolled
from sframe_unwind.sframe.table import Function
from sframe_unwind.translation.changes import Rules
from sframe_unwind.unwind_rule import OUTERMOST

_MAX_UNROLLED = 1 << 20
"""The most rows that a mask FDE may expand to: a PLT of 500,000 entries."""


class Description(NamedTuple):
    """The rules of SFrame or DWARF CFI for a function."""

    start: int
    end: int
    """Address after the last byte."""
    rules: Rules
    signal: bool
    """The function is a signal trampoline."""
    pauth_key: PauthKey
    repeats: bool = False
    """The rules may repeat from some offset on, like those of a PLT."""
    repetition_size: int = 0
    """Number of bytes after which the rules repeat; 0: not known."""


class Loss(NamedTuple):
    """A function that is not in the result."""

    start: int
    end: int
    """Address after the last byte."""
    reason: str


def of_cfi(function: CfiFunction, rules: CfiRules) -> Description:
    """Return the description of a function by DWARF CFI.

    :raises FormatError: too many rules are computed from the address.
    """
    said = rules.rows(function, function.start, function.end)
    key = PauthKey.B if function.cie.pauth_key_b else PauthKey.A
    repeats = any(row.depends_on_pc for row in function.rows)
    return Description(
        start=function.start, end=function.end, rules=said, signal=function.cie.signal, pauth_key=key, repeats=repeats
    )


def of_outermost(start: int, end: int) -> Description:
    """Return the description of code whose frames are the outermost ones.

    :param end: address after its last byte.
    """
    return Description(start=start, end=end, rules=([0], [OUTERMOST]), signal=False, pauth_key=PauthKey.A)


def of_sframe(function: Function) -> Description:
    """Return the description of a function by SFrame.

    :raises FormatError: a row is malformed, or the rows repeat too often.
    """
    repeats = function.fde.pc_type is PcType.MASK
    if repeats and function.fde.size // function.fde.repetition_size * function.fde.num_rows > _MAX_UNROLLED:
        raise FormatError(f"rows that repeat to more than {_MAX_UNROLLED:,}")
    rules = unrolled(function, function.start, function.end)
    fde = function.fde
    size = fde.repetition_size if repeats else 0
    return Description(function.start, function.end, rules, fde.signal, fde.pauth_key, repetition_size=size)
