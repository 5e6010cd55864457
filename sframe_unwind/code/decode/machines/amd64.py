"""AMD64: the facts that VEX lacks or has wrong."""

from __future__ import annotations

from collections.abc import Sequence

from sframe_unwind.arch import amd64
from sframe_unwind.code.decode.instruction import (
    ADD,
    CC_LEFT,
    CC_OPERATION,
    CC_RIGHT,
    CONSTANT,
    DIRECTED,
    DIRECTION,
    HIGH,
    LOAD,
    PC_RELATIVE,
    REGISTER,
    RESULT,
    SHIFT_LEFT,
    SUBTRACT,
    Expression,
    Instruction,
    Kind,
    Store,
)
from sframe_unwind.code.decode.machines import jumps
from sframe_unwind.code.decode.machines.amd64_described import (
    LEGACY_PREFIXES,
    RAX,
    RBX,
    RCX,
    RDI,
    RDX,
    RSI,
    V0,
    describe,
    like,
)
from sframe_unwind.code.decode.machines.amd64_shape import shape_of
from sframe_unwind.code.decode.machines.amd64_text import objdump_text, references
from sframe_unwind.code.decode.machines.base import (
    STOP,
    Machine,
    conditional_jump,
    jump,
    named,
    trap,
    writing,
)

_NAMES = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)))
_PARTS = {
    **{f"r{n}{part}": n for n in range(8, 16) for part in ("", "d", "w", "b")},
    **{f"{prefix}{x}x": n for n, x in enumerate("adcb") for prefix in ("r", "e", "")},
    **{f"{x}{part}": n for n, x in enumerate("adcb") for part in ("l", "h")},
    **{f"{prefix}{x}": n for n, x in enumerate(("si", "di", "bp", "sp"), 4) for prefix in ("r", "e", "")},
    **{f"{x}l": n for n, x in enumerate(("si", "di", "bp", "sp"), 4)},
}
_PRESERVED = (3, 6, 7, 12, 13, 14, 15)
_SIZES = (3, 4, 5, 2, 7, 1, 8, 6, 9, 10, 11, 12, 13, 14, 15)
"""Sizes in the order of frequency: no instruction is the beginning of another."""

_RELATIONS = {2: "<", 3: ">=", 4: "==", 5: "!=", 6: "<=", 7: ">"}
"""Intel's condition codes."""
_SUBTRACTIONS = {5: 8, 6: 16, 7: 32, 8: 64}
"""``AMD64G_CC_OP_SUBB`` to ``SUBQ``, and the bits that they subtract."""
_PADDING = (b"\xcc", b"\x90", b"\x66\x90", b"\x66\x66\x90", b"\xf3\x90")


_RELATIVE_JUMPS = frozenset((0xE8, 0xE9, 0xEB, *range(0x70, 0x80), *range(0xE0, 0xE4)))
_INDIRECT = (0x10, 0x18, 0x20, 0x28)
"""The field of the second byte that distinguishes calls and jumps after ff."""
_COPYING, _STRING_STORES = (0xA4, 0xA5), (0xA4, 0xA5, 0xAA, 0xAB)
"""Opcodes of ``movs``, and with ``stos``; the first of two is for bytes."""
_FAR_RETURNS = (0xCA, 0xCB)
"""Opcodes of ``lret``; the first has a number of bytes to remove."""
_NOT_IN_64_BITS = frozenset(
    (
        0x06,
        0x07,
        0x0E,
        0x16,
        0x17,
        0x1E,
        0x1F,
        0x27,
        0x2F,
        0x37,
        0x3F,
        0x60,
        0x61,
        0x82,
        0x9A,
        0xCE,
        0xD4,
        0xD5,
        0xD6,
        0xEA,
    )
)
"""Opcodes that do not exist in this mode; d5 is APX's prefix REX2, which VEX takes for ``aad``."""
_SEGMENT_STACK = (0xA0, 0xA1, 0xA8, 0xA9)
"""``push %fs``, ``pop %fs``, ``push %gs``, ``pop %gs``, after 0f"""
_BIT_TESTS = (0xA3, 0xAB, 0xB3, 0xBB)
"""``bt``, ``bts``, ``btr``, ``btc``"""


def _sizes(_code: bytes, _at: int) -> Sequence[int]:
    return _SIZES


def _special(raw: bytes) -> Instruction | None:
    found = _jump(raw)
    if found is not None:
        return found
    at, size, is_wide = _prefixes(raw)
    if at < 0:
        return STOP
    opcode, second, third = (*raw[at : at + 3], 0, 0, 0)[:3]
    if opcode in _FAR_RETURNS:
        return _far_return(raw, at, is_wide)
    if opcode in _NOT_IN_64_BITS:
        return STOP
    if opcode == 0x0F:
        if 0x80 <= second < 0x90:
            # With a prefix for 16 bits, Intel's processors ignore it, and AMD's cut the target of the jump off to 16
            # bits.
            return STOP if size == 2 and not is_wide else None
        return _of_two_bytes(raw, at, second, third)
    if opcode in _RELATIVE_JUMPS and size == 2 and not is_wide:
        return STOP
    if opcode == 0xFF and second & 0x38 in _INDIRECT and size == 2 and not is_wide:
        return STOP
    if opcode in (0xC4, 0xC5) and not at:
        return _moved_scalar(raw)
    if opcode in _STRING_STORES and 0x67 not in raw[:at] and (0xF2 in raw[:at] or 0xF3 in raw[:at]):
        each = 1 if not opcode & 1 else 8 if is_wide else size
        return _repeated(at + 1, opcode, each)
    return None


def _repeated(size: int, opcode: int, each: int) -> Instruction:
    """Return ``rep stos`` or ``rep movs``.

    :param each: the size in bytes of each word that is stored.
    """
    length = (SHIFT_LEFT, (REGISTER, RCX, 0), each.bit_length() - 1)
    pointers = (RDI, RSI) if opcode in _COPYING else (RDI,)
    first = (REGISTER, RDI, 0)
    place = (DIRECTED, first, (ADD, (SUBTRACT, first, length), (CONSTANT, each)))
    value: Expression = (REGISTER, RAX, 0) if each == 8 else RESULT
    if opcode in _COPYING:
        value = (LOAD, (ADD, (REGISTER, RSI, 0), RESULT), 8, False)
    puts = [(number, _advanced((REGISTER, number, 0), length)) for number in pointers]
    puts.append((RCX, RESULT))
    return Instruction(
        size=size, kind=Kind.NEXT, puts=tuple(puts), stores=((place, length, value),), exits=(), target=None
    )


def _advanced(pointer: Expression, length: Expression) -> Expression:
    return (DIRECTED, (ADD, pointer, length), (SUBTRACT, pointer, length))


def _prefixes(raw: bytes) -> tuple[int, int, bool]:
    """Return the number of prefix bytes, the size of operands according to them, and whether it is 64 bits.

    The number is negative if a prefix has no effect, because another prefix follows that would have to precede it.
    """
    at, size = 0, 4
    while at < len(raw) and raw[at] in LEGACY_PREFIXES:
        size = 2 if raw[at] == 0x66 else size
        at += 1
    if raw[at : at + 1] and raw[at] & 0xF0 == 0x40:
        is_wide = bool(raw[at] & 8)
        at += 1
        if at < len(raw) and (raw[at] in LEGACY_PREFIXES or raw[at] & 0xF0 == 0x40):
            return -1, size, is_wide
        return at, size, is_wide
    return at, size, False


def _far_return(raw: bytes, at: int, is_wide: bool) -> Instruction:
    """Return ``lret``, which also pops a code segment; VEX does not pop all of that."""
    size = at + (1 if raw[at] == _FAR_RETURNS[1] else 3)
    if len(raw) < size:
        return STOP
    if not is_wide:
        return Instruction(
            size=size, kind=Kind.STOP, puts=(), stores=(), exits=(), target=None
        )  # to an address of 32 or 16 bits
    popped = 16 + int.from_bytes(raw[at + 1 : size], "little")
    stack = (REGISTER, amd64.SP, 0)
    return Instruction(
        size=size,
        kind=Kind.RETURN,
        puts=((amd64.SP, (REGISTER, amd64.SP, popped)),),
        stores=(),
        exits=(),
        target=(LOAD, stack, 8, False),
    )


def _of_two_bytes(raw: bytes, at: int, opcode: int, operands: int) -> Instruction | None:
    if opcode == 0x1E and operands < 0xC0 and 0xF3 in raw[:at]:
        return STOP  # nop with an operand in memory: VEX takes it for one of four bytes, as endbr64
    if opcode in _SEGMENT_STACK:
        # VEX does not know the segment registers; a prefix makes it two bytes, unless the one for 64 bits follows.
        width = 2 if 0x66 in raw[:at] and raw[at - 1] & 0xF8 != 0x48 else 8
        stack = (REGISTER, amd64.SP, width if opcode & 1 else -width)
        stores: tuple[Store, ...] = () if opcode & 1 else ((stack, width, RESULT),)
        return Instruction(size=at + 2, kind=Kind.NEXT, puts=((amd64.SP, stack),), stores=stores, exits=(), target=None)
    if operands < 0xC0 or at + 3 > len(raw):
        return None
    register = _register(operands & 7 | (8 if at and raw[at - 1] & 0xF1 == 0x41 else 0))
    if opcode == 1 and operands == 0xD5:  # xend
        return writing(at + 3)
    if opcode == 1 and operands == 0xD0:
        # xgetbv: VEX assumes that the processor has x87, SSE and AVX, and nothing else.
        return writing(at + 3, (RAX, RDX))
    if opcode == 0x1E and operands & 0xF8 == 0xC8 and 0xF3 in raw[:at]:
        # rdssp: VEX takes it for a nop, as processors without shadow stacks do.
        return writing(at + 3, (register,))
    if opcode in _BIT_TESTS:
        # VEX puts the operand on the stack, below the stack pointer, even where it is the stack pointer.
        return writing(at + 3, (register,) if opcode != 0xA3 else ())
    return None


def _jump(raw: bytes) -> Instruction | None:
    first = raw[0]
    if first == 0xE8 and len(raw) >= 5:
        return _call(raw)
    if first == 0xE9 and len(raw) >= 5:
        return jump(5, 5 + int.from_bytes(raw[1:5], "little", signed=True))
    if first == 0xEB and len(raw) >= 2:
        return jump(2, 2 + int.from_bytes(raw[1:2], "little", signed=True))
    if first & 0xF0 == 0x70 and len(raw) >= 2:
        offset = 2 + int.from_bytes(raw[1:2], "little", signed=True)
        return conditional_jump(2, offset, _RELATIONS.get(first & 0xF))
    if first == 0x0F and len(raw) >= 6 and raw[1] & 0xF0 == 0x80:
        offset = 6 + int.from_bytes(raw[2:6], "little", signed=True)
        return conditional_jump(6, offset, _RELATIONS.get(raw[1] & 0xF))
    return trap(2) if raw[:2] == b"\x0f\x0b" else None  # ud2


def _moved_scalar(raw: bytes) -> Instruction | None:
    """Return ``vmovss`` or ``vmovsd`` between registers with the opcode for stores.

    VEX takes their operands for others.
    """
    at = 1 if raw[0] == 0xC5 else 2
    is_moved = len(raw) > at + 2 and raw[at] & 2 and raw[at + 1] == 0x11 and raw[at + 2] >= 0xC0
    if not is_moved or (at == 2 and raw[1] & 0x1F != 1):
        return None
    number = raw[at + 2] & 7 | (8 if at == 2 and not raw[1] & 0x20 else 0)
    return writing(at + 3, (V0 + number, V0 + number + HIGH))


def _register(number: int) -> int:
    """Return DWARF's number of a register, given its number in instructions."""
    return (RAX, RCX, RDX, RBX, amd64.SP, amd64.FP, RSI, RDI)[number] if number < 8 else number


def _call(raw: bytes) -> Instruction:
    offset = 5 + int.from_bytes(raw[1:5], "little", signed=True)
    stack = (REGISTER, amd64.SP, -8)
    return Instruction(
        size=5,
        kind=Kind.CALL,
        puts=((amd64.SP, stack),),
        stores=((stack, 8, (PC_RELATIVE, 5)),),
        exits=(),
        target=(PC_RELATIVE, offset),
    )


def _is_page_relative(_raw: bytes) -> bool:
    return False


def _is_padding(raw: bytes) -> bool:
    # nop, int3; data16 cs nopw, nopl: 0f 1f after any prefixes.
    rest = raw.lstrip(b"\x66\x2e\xf2\xf3\x48")
    return raw in _PADDING or rest[:2] == b"\x0f\x1f" or rest == b"\x90"


def _condition(helper: str, constants: Sequence[int]) -> tuple[str, int] | None:
    relation = _RELATIONS.get(constants[0]) if helper == "amd64g_calculate_condition" else None
    return None if relation is None else (relation, 2)


MACHINE = Machine(
    arch=amd64.ARCH,
    vex_name="ARCH_AMD64",
    big_endian=False,
    vex_registers={
        **{name: number for number, name in enumerate(_NAMES)},
        "cc_op": CC_OPERATION,
        "cc_dep1": CC_LEFT,
        "cc_dep2": CC_RIGHT,
        "d": DIRECTION,
    },
    vex_vectors={f"ymm{n}": 17 + n for n in range(16)},
    general=tuple(range(16)),
    preserved=frozenset(_PRESERVED),
    sp_at_entry=-8,
    callee_area=(0, 0),
    stack_alignment=16,
    kept_alignment=8,
    own_convention=(),
    other_links=(),
    ra_slot=-8,
    max_size=15,
    sizes=_sizes,
    special=_special,
    shape=shape_of,
    system_call=0,
    system_call_arguments=(RDI, RSI, RDX, 10, 8, 9),
    system_call_results=(RAX, RCX, 11),
    ending_calls=frozenset((60, 231, 15)),  # exit, exit_group, rt_sigreturn
    is_page_relative=_is_page_relative,
    is_padding=_is_padding,
    condition=_condition,
    comparisons=_SUBTRACTIONS,
    unsigned_comparisons=frozenset(_SUBTRACTIONS),
    describe=describe,
    jumps=jumps.amd64,
    like=like,
    execute=None,
    in_block_loop=None,
    unsized_helpers=("amd64g_dirtyhelper_XSAVE", "amd64g_dirtyhelper_SxDT"),
    helpers={
        "amd64g_dirtyhelper_S": (),
        "amd64g_dirtyhelper_CPUID": (RAX, RBX, RCX, RDX),
        "amd64g_dirtyhelper_RDTSCP": (RAX, RCX, RDX),
        "amd64g_dirtyhelper_X": (),
        "amd64g_dirtyhelper_F": (),
        "amd64g_dirtyhelper_AES": (),
        "amd64g_dirtyhelper_PCMPxSTRx": (RCX,),
    },
    capstone_registers={**_PARTS, **{f"{size}mm{n}": V0 + n for n in range(16) for size in "xyz"}},
    returns_through=None,
    att_syntax=True,
    objdump_text=objdump_text,
    references=references,
    disassembler=("CS_ARCH_X86", "CS_MODE_64"),
    directive_name=named(amd64.ARCH, "%"),
    has_access=True,
    entry_marks=frozenset(),  # endbr64 is also at targets of jumps
    plt_entry_sizes=(16,),
)
