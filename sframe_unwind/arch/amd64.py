"""AMD64, specification 3.1: the return address is always at a fixed offset from the CFA."""

from __future__ import annotations

from sframe_unwind.arch.base import Abi
from sframe_unwind.errors import FormatError
from sframe_unwind.sframe.header import Header
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa

PC, SP, FP = 16, 7, 6


def default_row(header: Header, base_is_sp: bool, words: tuple[int, ...]) -> UnwindRule:
    """``CFA = base + w1``, ``FP at CFA + w2``."""
    if not header.fixed_ra_offset:
        raise FormatError("AMD64 header without a fixed return address offset, expected -8", 6)
    if len(words) > 2:
        raise FormatError(f"AMD64 row with {len(words)} data words, expected 1 or 2")
    fp = words[1] if len(words) > 1 else header.fixed_fp_offset
    return UnwindRule(
        RegisterRule(SP if base_is_sp else FP, words[0], False),
        saved_at_cfa(header.fixed_ra_offset),
        saved_at_cfa(fp) if fp else None,
    )


def call_target(code: bytes, return_address: int) -> int | None:
    """Where ``call rel32`` goes."""
    return return_address + int.from_bytes(code[1:], "little", signed=True) if code[0] == 0xE8 else None


_NAMES = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)), "rip")

ABI = Abi(
    name="amd64",
    elf_machine="EM_X86_64",
    byteorder="little",
    pc=PC,
    sp=SP,
    fp=FP,
    ra=None,
    sp_from_cfa=0,
    default_row=default_row,
    register_names=dict(enumerate(_NAMES)),
    preserved=(3, *range(12, 16)),
    call_size=5,
    call_target=call_target,
    sigreturn=b"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05",  # mov $15,%rax; syscall
)
