"""s390x, specification 3.3: scaled CFA offsets, and return address or frame pointer possibly in a register."""

from __future__ import annotations

from sframe_unwind.arch.base import Arch

PC, SP, FP, RA = 65, 15, 11, 14

SP_FROM_CFA = -160
"""``SFRAME_S390X_SP_VAL_OFFSET``: the register save area that every caller provides lies below the CFA."""


def call_target(code: bytes, return_address: int) -> int | None:
    """Where ``brasl %r14,imm32`` goes."""
    if code[:2] != b"\xc0\xe5":
        return None
    return return_address - 6 + 2 * int.from_bytes(code[2:], "big", signed=True)


# DWARF numbers 16 to 31 are the floating-point registers in the order of the s390x ELF ABI supplement.
_FPRS = (0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15)

ARCH = Arch(
    name="s390x",
    elf_machine="EM_S390",
    byteorder="big",
    pc=PC,
    sp=SP,
    fp=FP,
    ra=RA,
    sp_from_cfa=SP_FROM_CFA,
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
