"""AMD64, specification 3.1: the return address is always at a fixed offset from the CFA."""

from __future__ import annotations

from sframe_unwind.arch.base import Arch

PC, SP, FP = 16, 7, 6


def call_target(code: bytes, return_address: int) -> int | None:
    """Where ``call rel32`` goes."""
    return return_address + int.from_bytes(code[1:], "little", signed=True) if code[0] == 0xE8 else None


_NAMES = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)), "rip")

ARCH = Arch(
    name="amd64",
    elf_machine="EM_X86_64",
    byteorder="little",
    pc=PC,
    sp=SP,
    fp=FP,
    ra=None,
    sp_from_cfa=0,
    register_names=dict(enumerate(_NAMES)),
    preserved=(3, *range(12, 16)),
    call_size=5,
    call_target=call_target,
    sigreturn=b"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05",  # mov $15,%rax; syscall
)
