"""AArch64 (AAPCS64) in both byte orders, specification 3.2: return address and frame pointer are saved together."""

from __future__ import annotations

from sframe_unwind.arch.base import Abi
from sframe_unwind.errors import FormatError
from sframe_unwind.sframe.header import Header
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa

PC, SP, FP, LR = 32, 31, 29, 30

PAC_MASK = 0xFF7F_0000_0000_0000
"""All bits above a 48-bit address but bit 55, which selects the half of the address space and is never signed."""


def default_row(header: Header, base_is_sp: bool, words: tuple[int, ...]) -> UnwindRule:
    """``CFA = base + w1``, ``RA at CFA + w2``, ``FP at CFA + w3``."""
    if len(words) > 3:
        raise FormatError(f"AArch64 row with {len(words)} data words, expected 1 to 3")
    ra = words[1] if len(words) > 1 else header.fixed_ra_offset
    fp = words[2] if len(words) > 2 else header.fixed_fp_offset
    return UnwindRule(
        RegisterRule(SP if base_is_sp else FP, words[0], False),
        saved_at_cfa(ra) if ra else None,
        saved_at_cfa(fp) if fp else None,
    )


def call_target(code: bytes, return_address: int) -> int | None:
    """Where ``bl imm26`` goes; instructions are little-endian in both byte orders of data."""
    word = int.from_bytes(code, "little")
    if word >> 26 != 0b100101:
        return None
    words = (word & 0x03FF_FFFF ^ 0x0200_0000) - 0x0200_0000
    return return_address - 4 + 4 * words


_NAMES = {**{n: f"x{n}" for n in range(31)}, SP: "sp", PC: "pc"}


def _abi(name: str, byteorder: str) -> Abi:
    return Abi(
        name=name,
        elf_machine="EM_AARCH64",
        byteorder=byteorder,
        pc=PC,
        sp=SP,
        fp=FP,
        ra=LR,
        sp_from_cfa=0,
        default_row=default_row,
        register_names=_NAMES,
        preserved=tuple(range(19, 29)),
        call_size=4,
        call_target=call_target,
        sigreturn=b"\x68\x11\x80\xd2\x01\x00\x00\xd4",  # mov x8,#139; svc #0
        pac_mask=PAC_MASK,
    )


LITTLE = _abi("aarch64", "little")
BIG = _abi("aarch64_be", "big")
