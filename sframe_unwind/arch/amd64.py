"""AMD64 (System V ABI, AMD64 supplement).  A call pushes the return address, so it is always on the stack."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from typing import Callable

from sframe_unwind.address import ADDRESS_MASK, WORD_SIZE
from sframe_unwind.arch.base import Arch, FrameRecord, JumpBuffer, PltStub, PointerGuard, SignalFrame
from sframe_unwind.arch.elf_code import ElfCode, FieldRelocation, SlotLoad, absolute, relative, unchanged
from sframe_unwind.arch.linux_kernel import LinuxKernel, SwitchFrame
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa

PC, SP, FP = 16, 7, 6
_CS = 51
_NAMES = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)), "rip")

_SIGCONTEXT = (8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16)
"""The registers of ``struct sigcontext`` in its order."""
_UCONTEXT = {number: 40 + WORD_SIZE * word for word, number in enumerate(_SIGCONTEXT)}
"""Offsets of the registers in ``ucontext_t``, in bytes.  Its head (40) precedes the ``struct sigcontext``."""
_SEGMENTS = 40 + WORD_SIZE * 18
"""Offset of the word ``REG_CSGSFS`` in ``ucontext_t``, in bytes.  CS is in its low 16 bits."""
_USER_CS = 0x33
"""``__USER_CS`` of Linux: the code segment of 64-bit programs."""


def ucontext_pc(registers: Mapping[int, int], _read: Callable[[int, int], bytes]) -> tuple[int, bool]:
    """Return RIP.  The kernel saves CS, and the C library does not."""
    return registers[PC], registers[_CS] & 0xFFFF == _USER_CS


def ends_call(code: bytes) -> bool:
    """Recognise ``call rel32``, and ``call r/m64`` by its opcode FF /2 and the length that its ModRM byte gives."""
    return code[-5:-4] == b"\xe8" or any(
        code[-length] == 0xFF and code[1 - length] >> 3 & 7 == 2 and _call_length(code[1 - length :]) == length
        for length in range(2, 8)
    )


def _call_length(operand: bytes) -> int:
    """Return the length of ``call r/m64`` without prefixes, in bytes.

    :param operand: the bytes from the ModRM byte on.
    """
    mode, register = operand[0] >> 6, operand[0] & 7
    if mode == 3:
        return 2
    base = register
    length = 2
    if register == 4:  # a SIB byte follows
        length += 1
        base = operand[1] & 7 if len(operand) > 1 else 0
    if mode == 0:
        return length + (4 if base == 5 else 0)
    return length + (1 if mode == 1 else 4)


def call_target(code: bytes, return_address: int) -> int | None:
    """Return the target of ``call rel32``."""
    return return_address + int.from_bytes(code[1:], "little", signed=True) if code[0] == 0xE8 else None


def returned_address(code: bytes, address: int) -> tuple[int, bool] | None:
    """Decode ``lea`` or ``mov`` relative to ``%rip``, or ``mov`` of an immediate, into ``%rax``."""
    start = 4 if code.startswith(b"\xf3\x0f\x1e\xfa") else 0  # endbr64
    if code[start : start + 4] == b"\x55\x48\x89\xe5":  # push %rbp; mov %rsp,%rbp
        start += 4
    operation, offset = code[start : start + 3], struct.unpack_from("<i", code, start + 3)[0]
    kinds = {b"\x48\x8d\x05": False, b"\x48\x8b\x05": True}  # lea, mov offset(%rip),%rax
    if operation in kinds:
        return address + start + 7 + offset, kinds[operation]
    return _immediate(code[start:])


def _immediate(code: bytes) -> tuple[int, bool] | None:
    """Decode ``mov $address,%rax`` in its three encodings, which code that is not position-independent has."""
    if code[:3] == b"\x48\xc7\xc0":
        return struct.unpack_from("<i", code, 3)[0], False
    if code[:2] == b"\x48\xb8":
        return struct.unpack_from("<Q", code, 2)[0], False
    return (struct.unpack_from("<I", code, 1)[0], False) if code[:1] == b"\xb8" else None


def _pushed(words: int) -> UnwindRule:
    """Return the rule where a stub has pushed some words onto the return address."""
    return UnwindRule(RegisterRule(SP, WORD_SIZE * (1 + words), False), saved_at_cfa(-WORD_SIZE), None)


_HEADER_PARTS = ((0, _pushed(1)), (6, _pushed(2)))
"""The other stubs have pushed the number of the relocation; the header's first instruction pushes a second word."""
_HEADER = re.compile(rb"\xff\x35(....)\xf2?\xff\x25(....)", re.DOTALL)  # push slot(%rip); [bnd] jmp *slot(%rip)
# [endbr64, or [bnd] jmp *slot(%rip)]; push $number; [bnd] jmp header
_LAZY = re.compile(rb"((?:\xf3\x0f\x1e\xfa|\xf2?\xff\x25....)?\x68....)\xf2?\xe9(....)", re.DOTALL)
_JUMP = re.compile(rb"(?:\xf3\x0f\x1e\xfa)?\xf2?\xff\x25....", re.DOTALL)  # [endbr64;] [bnd] jmp *slot(%rip)


def plt_stub(code: bytes) -> PltStub | None:
    """Decode the stubs of GNU ld and lld: the header, the entries of a lazy PLT, and those that only jump."""
    header = _HEADER.match(code)
    if header:
        (pushed,), (target,) = struct.unpack("<i", header[1]), struct.unpack("<i", header[2])
        # The second and the third word of the global offset table.
        is_header = header.end() + target == 6 + pushed + WORD_SIZE
        return PltStub(_HEADER_PARTS, is_header=True) if is_header else None
    lazy = _LAZY.match(code)
    if lazy:
        (distance,) = struct.unpack("<i", lazy[2])
        return PltStub(((0, _pushed(0)), (lazy.end(1), _pushed(1))), header=lazy.end() + distance)
    return PltStub(((0, _pushed(0)),)) if _JUMP.match(code) else None


def slot_loads(code: bytes, address: int, entry: int) -> Iterator[SlotLoad]:
    """Yield each ``jmp *slot(%rip)``."""
    for found in re.finditer(rb"\xff\x25(....)", code, re.DOTALL):
        (distance,) = struct.unpack("<i", found[1])
        yield SlotLoad(found.start() - found.start() % (entry or 16), address + found.end() + distance)


_RELOCATIONS = {
    1: FieldRelocation(8, absolute),  # R_X86_64_64
    2: FieldRelocation(4, relative),  # R_X86_64_PC32
    10: FieldRelocation(4, absolute),  # R_X86_64_32
    11: FieldRelocation(4, absolute),  # R_X86_64_32S
    24: FieldRelocation(8, relative),  # R_X86_64_PC64
}

ELF_CODE = ElfCode(
    slot_relocations=(7, 6),
    relative_relocation=8,
    fields={
        **_RELOCATIONS,
        4: FieldRelocation(4, relative),  # R_X86_64_PLT32
        15: FieldRelocation(1, relative),  # R_X86_64_PC8
    },
    relocate_instruction=unchanged,
    plt_header_size=16,
    slot_loads=slot_loads,
)

_PT_REGS = ("ax", "dx", "cx", "bx", "si", "di", "bp", "sp", *(f"r{n}" for n in range(8, 16)), "ip")

LINUX_KERNEL = LinuxKernel(
    entry_code=(),  # ORC says where it is
    passages=(),
    saved_registers=dict(enumerate(_PT_REGS)),
    frame_record="",
    task_registers={},
    ends_function=lambda _code: False,
    ends_exception=lambda _code: False,
    switch_frame=SwitchFrame(
        "inactive_task_frame",
        "thread.sp",
        {3: "bx", FP: "bp", **{n: f"r{n}" for n in range(12, 16)}, PC: "ret_addr"},
    ),
    user_mode=("cs", 3),
)

ARCH = Arch(
    name="amd64",
    elf_machine="EM_X86_64",
    uname="x86_64",
    byteorder="little",
    pc=PC,
    sp=SP,
    fp=FP,
    ra=None,
    sp_from_cfa=0,
    stack_alignment=16,
    register_names=dict(enumerate(_NAMES)),
    preserved=(3, *range(12, 16)),
    pac_mask=0,
    vector_granules=None,
    instruction_unit=1,
    libunwind_unit=1,
    # int3 (lld), nop, and the long forms of nop after any prefixes.
    padding=re.compile(rb"(?:\xcc|[\x66\x2e]*(?:\x90|\x0f\x1f(?:\0|\x40\0|\x44\0\0|\x80\0{4}|\x84\0{5})))*", re.DOTALL),
    call_size=5,
    call_target=call_target,
    returned_address=returned_address,
    plt_stub=plt_stub,
    plt_header_rows=_HEADER_PARTS,
    frame_record=FrameRecord(in_back_chain=False, fp=0, pc=WORD_SIZE, sp=2 * WORD_SIZE, at_end=True),
    signal_frames=(
        SignalFrame(
            code=b"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05",  # mov $15,%rax; syscall
            registers=_UCONTEXT,  # at the trampoline, SP is the address of the ucontext_t
        ),
    ),
    ucontext={**_UCONTEXT, _CS: _SEGMENTS},
    ucontext_pc=ucontext_pc,
    jump_buffer=JumpBuffer(
        registers={number: WORD_SIZE * word for word, number in enumerate((3, FP, 12, 13, 14, 15, SP, PC))},
        mangled=frozenset((FP, SP, PC)),
        rotation=17,
    ),
    pointer_guard=PointerGuard(("fs_base",), offset=0x30, symbols=(), random=WORD_SIZE, random_mask=ADDRESS_MASK),
    system_call_arguments=(5, 4, 1, 10, 8, 9),
    ends_call=ends_call,
    user_registers=(15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, None, 16, None, None, 7),  # user_regs_struct
    float_registers=(),
    sample_registers={
        **dict(zip(range(9), (0, 3, 2, 1, 4, 5, 6, 7, 16))),  # ax, bx, cx, dx, si, di, bp, sp, ip
        **{16 + n: 8 + n for n in range(8)},  # r8 to r15
    },
    relocations=_RELOCATIONS,
    elf_code=ELF_CODE,
    linux_kernel=LINUX_KERNEL,
)
