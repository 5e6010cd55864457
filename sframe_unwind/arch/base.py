"""What one ABI has to say for itself; the files of the ABIs mirror each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Callable, NamedTuple


class Arch(NamedTuple):
    """One ABI.  Registers are DWARF register numbers."""

    name: str
    """As in JSON: ``amd64``, ``aarch64``, ``aarch64_be``, ``s390x``."""
    elf_machine: str
    """``e_machine`` of its ELF files."""
    byteorder: str
    """``"little"`` or ``"big"``."""
    pc: int
    sp: int
    fp: int
    ra: int | None
    """Register that holds the return address at a function's entry; ``None``: it is on the stack."""
    sp_from_cfa: int
    """The caller's SP is the CFA plus this many bytes."""
    register_names: Mapping[int, str]
    """DWARF register number to the name that the debuggers use."""
    preserved: tuple[int, ...]
    """What a function leaves unchanged, besides SP and FP and what lies in wider registers."""
    call_size: int
    """Length in bytes of the direct call instruction."""
    call_target: Callable[[bytes, int], int | None]
    """``(bytes before a return address, return address)``: where a direct call that ends there goes; else ``None``."""
    sigreturn: bytes
    """How the code of a signal trampoline begins: the system call ``rt_sigreturn``."""
    pac_mask: int = 0
    """The bits of a signed return address that do not belong to the address, where the target does not say."""

    def strip(self, address: int, mask: int) -> int:
        """Return a signed return address without its authentication code.

        Bit 55 tells user from kernel addresses and fills the masked bits, as the processor does.
        """
        return address | mask if address >> 55 & 1 else address & ~mask

    def register_name(self, number: int) -> str:
        """Return the debuggers' name of a DWARF register, or ``"DWARF register N"``."""
        return self.register_names.get(number) or f"DWARF register {number}"
