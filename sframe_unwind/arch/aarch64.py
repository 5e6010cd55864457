"""AArch64 (AAPCS64) in both byte orders, specification 3.2: return address and frame pointer are saved together."""

from __future__ import annotations

from sframe_unwind.arch.base import Arch

PC, SP, FP, LR = 32, 31, 29, 30

PAC_MASK = 0xFF7F_0000_0000_0000
"""All bits above a 48-bit address but bit 55, which selects the half of the address space and is never signed."""


def call_target(code: bytes, return_address: int) -> int | None:
    """Where ``bl imm26`` goes; instructions are little-endian in both byte orders of data."""
    word = int.from_bytes(code, "little")
    if word >> 26 != 0b100101:
        return None
    words = (word & 0x03FF_FFFF ^ 0x0200_0000) - 0x0200_0000
    return return_address - 4 + 4 * words


_NAMES = {**{n: f"x{n}" for n in range(31)}, SP: "sp", PC: "pc"}


def _arch(name: str, byteorder: str) -> Arch:
    return Arch(
        name=name,
        elf_machine="EM_AARCH64",
        byteorder=byteorder,
        pc=PC,
        sp=SP,
        fp=FP,
        ra=LR,
        sp_from_cfa=0,
        register_names=_NAMES,
        preserved=tuple(range(19, 29)),
        call_size=4,
        call_target=call_target,
        sigreturn=b"\x68\x11\x80\xd2\x01\x00\x00\xd4",  # mov x8,#139; svc #0
        pac_mask=PAC_MASK,
    )


LITTLE = _arch("aarch64", "little")
BIG = _arch("aarch64_be", "big")
