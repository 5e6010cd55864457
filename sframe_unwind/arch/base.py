"""The interface of an architecture.  To add an architecture, fill in every field of :class:`Arch`; none has a default.

Registers are DWARF register numbers, as the psABI supplement of the machine defines them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Callable

from sframe_unwind.address import WORD_SIZE, ByteOrder
from sframe_unwind.arch.elf_code import ElfCode, FieldRelocation
from sframe_unwind.arch.linux_kernel import LinuxKernel
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa


class SignalFrame(NamedTuple):
    """The frame that Linux pushes to call a signal handler.  It holds the registers of the interrupted frame."""

    code: bytes
    """The instructions that the handler returns to.  They call ``rt_sigreturn`` or ``sigreturn``."""
    registers: Mapping[int, int]
    """Maps a register to the offset of its value, in bytes from SP, or from the address that :attr:`pointer` gives."""
    pointer: int | None = None
    """Offset from SP of a pointer to the saved registers, in bytes; ``None``: the offsets count from SP."""


class FrameRecord(NamedTuple):
    """The record that code with frame pointers, or with a back chain, keeps for each frame."""

    in_back_chain: bool
    """The word at SP points to the record; ``False``: the frame pointer points to it."""
    fp: int
    """Offset of the saved frame pointer from the start of the record, in bytes."""
    pc: int
    """Offset of the return address from the start of the record, in bytes."""
    sp: int
    """The caller's SP minus the address of the record, in bytes; a lower bound unless :attr:`at_end`."""
    at_end: bool
    """The record is at the end of the frame; ``False``: it can be anywhere in the frame, so that SP is not known."""


class JumpBuffer(NamedTuple):
    """The ``jmp_buf`` of glibc and musl, in which ``setjmp`` saves the registers that a call preserves.

    glibc mangles the addresses in it: it combines them with a random guard by exclusive or, and rotates the result.
    musl stores them as they are, at the same offsets.
    """

    registers: Mapping[int, int]
    """Maps a register to the offset of its value, in bytes.  pc is the address to which ``setjmp`` returns."""
    mangled: frozenset[int]
    """The registers that glibc mangles."""
    rotation: int
    """Number of bits by which glibc rotates a mangled value to the left."""


class PointerGuard(NamedTuple):
    """The place of the guard that :class:`JumpBuffer` describes."""

    thread_pointer: tuple[str, ...]
    """The debuggers' names of the registers with the thread pointer, the most significant part first, each part of
    the same size.  Empty: the guard is not in the thread control block."""
    offset: int
    """Offset of the guard from the thread pointer, in bytes."""
    symbols: tuple[str, ...]
    """The variables that hold the guard: of the dynamic linker, and of a statically linked program."""
    random: int
    """Offset of the word at ``AT_RANDOM`` from which the guard is made when the program starts, in bytes."""
    random_mask: int
    """The bits of that word that the guard keeps."""


class PltStub(NamedTuple):
    """The code of one stub in a procedure linkage table (PLT), and the rules that its instructions prove."""

    parts: tuple[tuple[int, UnwindRule], ...]
    """Offset in bytes from the start of the stub, and the rule that holds from there on, in ascending order.  The last
    one also covers the padding after the last jump."""
    is_header: bool = False
    """The stub is the first entry of a lazy PLT, which the other entries jump to."""
    header: int | None = None
    """Offset of the header from the start of the stub, in bytes.  The rules hold only if the code there is a header.
    ``None``: the rules depend on no other code."""

    def rule(self, offset: int) -> UnwindRule:
        """Return the rule at an offset from the start of the stub, in bytes."""
        return next(rule for start, rule in reversed(self.parts) if start <= offset)


class Arch(NamedTuple):
    """One machine in one byte order."""

    name: str
    """The name in messages and JSON: ``amd64``, ``aarch64``, ``aarch64_be`` or ``s390x``."""
    elf_machine: str
    """The name of ``e_machine`` in its ELF files, as the ELF gABI has it."""
    uname: str
    """The machine name that ``uname -m`` prints."""
    byteorder: ByteOrder

    pc: int
    sp: int
    fp: int
    ra: int | None
    """Register that holds the return address at the entry of a function; ``None``: it is on the stack."""
    sp_from_cfa: int
    """The caller's SP minus the CFA, in bytes."""
    stack_alignment: int
    """Alignment of SP at a call by the procedure call standard, in bytes.  Every CFA has it too."""
    register_names: Mapping[int, str]
    """Maps a register to the name that GDB and LLDB use."""
    preserved: tuple[int, ...]
    """The callee-saved registers, without SP, FP and the parts of wider registers."""
    pac_mask: int
    """The bits of a signed return address that hold the authentication code, for targets that do not report them.
    0: the architecture does not sign return addresses."""

    vector_granules: int | None
    """The DWARF register that stands for the length of scalable vectors, in granules of 8 bytes (VG)."""

    instruction_unit: int
    """Alignment of instructions in bytes."""
    libunwind_unit: int
    """The unit, in bytes, in which the regions of libunwind count instructions."""
    padding: re.Pattern[bytes]
    """Matches the bytes with which assemblers and linkers fill the space between two functions."""
    call_size: int
    """Size of the direct call instruction in bytes."""
    call_target: Callable[[bytes, int], int | None]
    """``(last bytes before the return address, return address)``: returns the target of the direct call that ends at
    the return address, or ``None``."""
    returned_address: Callable[[bytes, int], tuple[int, bool] | None]
    """``(code, its address)``: decodes a function that returns the address of a variable.  Returns an address, and
    whether the function loads its result from memory at that address; ``None``: the code has another form."""
    plt_stub: Callable[[bytes], PltStub | None]
    """``(code from the start of a stub on)``: decodes a PLT stub; ``None``: the code has another form.  A stub without
    ``header`` is entered as a function is, by a call or a tail call; a header is entered by the other stubs."""
    plt_header_rows: tuple[tuple[int, UnwindRule], ...]
    """The rows that GNU ld writes for a PLT header.  Empty: it writes none."""

    frame_record: FrameRecord
    signal_frames: tuple[SignalFrame, ...]
    """The signal frames of the kernel, one for each kind of ``sigreturn``."""
    ucontext: Mapping[int, int]
    """Maps a register to the offset of its value in ``ucontext_t``, in bytes.  The C library and the kernel use the
    same structure, but the C library does not fill in all of it."""
    ucontext_pc: Callable[[Mapping[int, int], Callable[[int, int], bytes]], tuple[int, bool]]
    """``(registers of a ucontext_t, read memory)``: returns the pc at which the context resumes, and whether it is
    certain that no call ends there, because the kernel saved the context or because it has not run yet."""
    jump_buffer: JumpBuffer
    pointer_guard: PointerGuard
    system_call_arguments: tuple[int, ...]
    """The registers with the arguments of a system call."""
    ends_call: Callable[[bytes], bool]
    """``(the last 8 bytes before an address)``: returns whether they end with a call instruction."""
    user_registers: tuple[int | None, ...]
    """The register in each word of the register set ``NT_PRSTATUS``; ``None``: the word is not used."""
    float_registers: tuple[int, ...]
    """The register in each word of ``NT_FPREGSET`` after the first.  Empty unless functions save addresses in
    floating-point registers."""
    sample_registers: Mapping[int, int]
    """Maps the kernel's numbers of the user registers in samples of perf (``asm/perf_regs.h``) to registers."""
    relocations: Mapping[int, FieldRelocation]
    """Maps a relocation type to its effect, for the types that occur in unwind sections."""
    elf_code: ElfCode
    linux_kernel: LinuxKernel | None
    """The entry code of the Linux kernel; ``None``: unwinding a kernel's stack ends there."""

    def may_be_kernel(self, pc: int) -> bool:
        """Return whether code of a Linux kernel whose stacks are known can be at an address."""
        return self.linux_kernel is not None and pc >= self.linux_kernel.lowest_code

    def strip(self, address: int, mask: int) -> int:
        """Return a signed return address without its authentication code.

        Copies bit 55, which distinguishes user from kernel addresses, into the masked bits, as the processor does.
        """
        return address | mask if address >> 55 & 1 else address & ~mask

    @property
    def return_column(self) -> int:
        """The number of the return address in CFI, by the machine's ABI."""
        return self.pc if self.ra is None else self.ra

    @property
    def call_rule(self) -> UnwindRule:
        """The rule that holds at the first instruction of a function: a call has just arrived, nothing is saved."""
        pushed = WORD_SIZE if self.ra is None else 0
        return_address = saved_at_cfa(-WORD_SIZE) if self.ra is None else None
        return UnwindRule(RegisterRule(self.sp, pushed - self.sp_from_cfa, False), return_address, None)

    def register_name(self, number: int) -> str:
        """Return the debuggers' name of a register, or ``"DWARF register N"`` if it has none."""
        return self.register_names.get(number) or f"DWARF register {number}"
