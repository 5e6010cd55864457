"""What a machine is to unwinding.  The fields of :class:`Arch` are the checklist for a new one: none has a default.

Registers are DWARF register numbers, as the psABI supplement of the machine has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Callable, NamedTuple


class SignalFrame(NamedTuple):
    """The frame that Linux makes to call a signal handler, with the registers of the interrupted frame."""

    code: bytes
    """The instructions that the handler returns to: the system call ``rt_sigreturn`` or ``sigreturn``."""
    registers: Mapping[int, int]
    """Register to the offset of its value, in bytes from SP or from what :attr:`pointer` leads to."""
    pointer: int | None = None
    """Offset from SP of a pointer to the saved registers, in bytes; ``None``: they are at SP itself."""


class FrameRecord(NamedTuple):
    """What code that keeps the convention of a frame pointer, or of a back chain, saves for each frame."""

    in_back_chain: bool
    """The record is where the word at SP points to; ``False``: where the frame pointer points to."""
    fp: int
    """Offset of the caller's frame pointer from the record, in bytes."""
    pc: int
    """Offset of the return address, likewise."""
    sp: int
    """What to add to the record's address to get the caller's SP, in bytes."""


class FieldRelocation(NamedTuple):
    """How a relocation fills in a field that holds an address or a distance."""

    size: int
    """Size of the field in bytes."""
    pc_relative: bool
    """The value is relative to the field's own address."""


class Arch(NamedTuple):
    """One machine, in one byte order."""

    name: str
    """As in JSON: ``amd64``, ``aarch64``, ``aarch64_be``, ``s390x``."""
    elf_machine: str
    """``e_machine`` of its ELF files."""
    uname: str
    """What ``uname -m`` calls it."""
    byteorder: str
    """``"little"`` or ``"big"``."""

    pc: int
    sp: int
    fp: int
    ra: int | None
    """Register that holds the return address at a function's entry; ``None``: it is on the stack."""
    sp_from_cfa: int
    """The caller's SP is the CFA plus this many bytes."""
    stack_alignment: int
    """What SP is a multiple of at a call by the procedure call standard, in bytes, and so every CFA."""
    register_names: Mapping[int, str]
    """Register to the name that the debuggers use."""
    preserved: tuple[int, ...]
    """What a function leaves unchanged, besides SP and FP and what lies in wider registers."""
    pac_mask: int
    """The bits of a signed return address that do not belong to the address, where the target does not say; else 0."""

    instruction_unit: int
    """Instructions begin at multiples of so many bytes; libunwind counts in this unit."""
    call_size: int
    """Size of the direct call instruction in bytes."""
    call_target: Callable[[bytes, int], int | None]
    """``(bytes before a return address, return address)``: where a direct call that ends there goes; else ``None``."""
    returned_address: Callable[[bytes, int], tuple[int, bool] | None]
    """``(code, its address)`` of a function that returns the address of a variable: that address, and whether it is
    only the address of a word that has it; ``None``: it is another function."""

    frame_record: FrameRecord
    signal_frames: tuple[SignalFrame, ...]
    user_registers: tuple[int | None, ...]
    """The register in each word of what the kernel writes for ``NT_PRSTATUS``; ``None``: one that nobody wants here."""
    float_registers: tuple[int, ...]
    """The register in each word of ``NT_FPREGSET`` behind the first, where functions save addresses in them."""
    relocations: Mapping[int, FieldRelocation]
    """Relocation type to what it does, for the types that stand in unwind sections."""

    def strip(self, address: int, mask: int) -> int:
        """Return a signed return address without its authentication code.

        Bit 55 tells user from kernel addresses and fills the masked bits, as the processor does.
        """
        return address | mask if address >> 55 & 1 else address & ~mask

    def register_name(self, number: int) -> str:
        """Return the debuggers' name of a register, or ``"DWARF register N"``."""
        return self.register_names.get(number) or f"DWARF register {number}"
