"""s390x, specification 3.3: scaled CFA offsets, and return address or frame pointer possibly in a register."""

from __future__ import annotations

from sframe_unwind.arch.base import Abi
from sframe_unwind.errors import FormatError
from sframe_unwind.sframe.header import Header
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa

PC, SP, FP, RA = 65, 15, 11, 14

SP_FROM_CFA = -160
"""``SFRAME_S390X_SP_VAL_OFFSET``: the register save area that every caller provides lies below the CFA."""
CFA_ADJUSTMENT = 160
CFA_ALIGNMENT = 8
"""``SFRAME_S390X_CFA_OFFSET_ALIGNMENT_FACTOR``: CFA offsets are stored divided by this, to fit 8 bits more often."""
RA_NOT_SAVED = 0
"""``SFRAME_FRE_RA_OFFSET_INVALID``: a padding word, so that FP can follow."""


def default_row(header: Header, base_is_sp: bool, words: tuple[int, ...]) -> UnwindRule:
    """``CFA = base + w1 * 8 + 160``; RA and FP at CFA + w2 and w3, or (version 2) in register w >> 1 where w is odd."""
    if len(words) > 3:
        raise FormatError(f"s390x row with {len(words)} data words, expected 1 to 3")
    ra = words[1] if len(words) > 1 else RA_NOT_SAVED
    return UnwindRule(
        RegisterRule(SP if base_is_sp else FP, words[0] * CFA_ALIGNMENT + CFA_ADJUSTMENT, False),
        None if ra == RA_NOT_SAVED else _saved(header, ra),
        _saved(header, words[2]) if len(words) > 2 else None,
    )


def _saved(header: Header, word: int) -> RegisterRule | None:
    if not word & 1:
        return saved_at_cfa(word)
    if header.version != 2:
        raise FormatError(f"s390x row with the odd offset {word}, but version {header.version} has no registers there")
    if word < 0:
        raise FormatError(f"s390x row with the negative register number {word >> 1}")
    return RegisterRule(word >> 1, 0, False)


def call_target(code: bytes, return_address: int) -> int | None:
    """Where ``brasl %r14,imm32`` goes."""
    if code[:2] != b"\xc0\xe5":
        return None
    return return_address - 6 + 2 * int.from_bytes(code[2:], "big", signed=True)


# DWARF numbers 16 to 31 are the floating-point registers in the order of the s390x ELF ABI supplement.
_FPRS = (0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15)

ABI = Abi(
    name="s390x",
    elf_machine="EM_S390",
    byteorder="big",
    pc=PC,
    sp=SP,
    fp=FP,
    ra=RA,
    sp_from_cfa=SP_FROM_CFA,
    cfa_scale=CFA_ALIGNMENT,
    cfa_adjustment=CFA_ADJUSTMENT,
    default_row=default_row,
    register_names={
        **{n: f"r{n}" for n in range(16)},
        **{16 + i: f"f{n}" for i, n in enumerate(_FPRS)},
        64: "pswm",
        PC: "pswa",
    },
    preserved=(*range(6, 11), 12, 13, *range(24, 32)),
    call_size=6,
    call_target=call_target,
    sigreturn=b"\x0a\xad",  # svc 173
)
