"""AMD64."""

from __future__ import annotations

from collections.abc import Sequence

from sframe_unwind.arch import amd64
from sframe_unwind.code.instruction import CC_LEFT, CC_OPERATION, CC_RIGHT, PC_RELATIVE, REGISTER, Instruction, Kind
from sframe_unwind.code.machines.base import Machine, conditional_jump, jump, trap

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
"""In the order of how frequent they are: no instruction is the beginning of another."""

_RELATIONS = {2: "<", 3: ">=", 4: "==", 5: "!=", 6: "<=", 7: ">"}
"""Intel's condition codes."""
_SUBTRACTIONS = frozenset(range(5, 9))
"""``AMD64G_CC_OP_SUBB`` to ``SUBQ``."""
_SIZED = ("pushq", "popq", "callq", "retq", "jmpq", "leaveq")
_SIZED_WITH_REGISTER = ("mov", "lea", "add", "sub", "and", "or", "xor", "test", "cmp")
_PADDING = (b"\xcc", b"\x90", b"\x66\x90", b"\x66\x66\x90", b"\xf3\x90")


def _sizes(_code: bytes, _at: int) -> Sequence[int]:
    return _SIZES


def _special(raw: bytes) -> Instruction | None:
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


def _call(raw: bytes) -> Instruction:
    offset = 5 + int.from_bytes(raw[1:5], "little", signed=True)
    stack = (REGISTER, amd64.SP, -8)
    return Instruction(5, Kind.CALL, ((amd64.SP, stack),), ((stack, 8, (PC_RELATIVE, 5)),), (), (PC_RELATIVE, offset))


def _is_page_relative(_raw: bytes) -> bool:
    return False


def _is_padding(raw: bytes) -> bool:
    # nop, int3; data16 cs nopw, nopl: 0f 1f behind any prefixes.
    rest = raw.lstrip(b"\x66\x2e\xf2\xf3\x48")
    return raw in _PADDING or rest[:2] == b"\x0f\x1f" or rest == b"\x90"


def _objdump_text(mnemonic: str, operands: str) -> str:
    # objdump leaves out the size of the operand where a register tells it.
    if mnemonic in _SIZED or (mnemonic[-1:] == "q" and mnemonic[:-1] in _SIZED_WITH_REGISTER and "%r" in operands):
        mnemonic = mnemonic[:-1]
    if mnemonic[-1:] in "lwb" and mnemonic[:-1] in _SIZED_WITH_REGISTER and "%" in operands.rpartition(", ")[2][:1]:
        mnemonic = mnemonic[:-1]
    return f"{mnemonic} {operands.replace(', ', ',')}".rstrip()


def _condition(helper: str, constants: Sequence[int]) -> tuple[str, int] | None:
    relation = _RELATIONS.get(constants[0]) if helper == "amd64g_calculate_condition" else None
    return None if relation is None else (relation, 2)


MACHINE = Machine(
    arch=amd64.ARCH,
    vex_name="ARCH_AMD64",
    vex_registers={
        **{name: number for number, name in enumerate(_NAMES)},
        "cc_op": CC_OPERATION,
        "cc_dep1": CC_LEFT,
        "cc_dep2": CC_RIGHT,
    },
    vex_vectors={f"ymm{n}": 17 + n for n in range(16)},
    general=tuple(range(16)),
    preserved=frozenset(_PRESERVED),
    sp_at_entry=-8,
    stack_alignment=16,
    ra_slot=-8,
    max_size=15,
    sizes=_sizes,
    special=_special,
    system_call=0,
    ending_calls=frozenset((60, 231, 15)),  # exit, exit_group, rt_sigreturn
    is_page_relative=_is_page_relative,
    is_padding=_is_padding,
    condition=_condition,
    comparisons=_SUBTRACTIONS,
    unsigned_comparisons=_SUBTRACTIONS,
    capstone_registers=_PARTS,
    returns_through=None,
    att_syntax=True,
    objdump_text=_objdump_text,
    disassembler=("CS_ARCH_X86", "CS_MODE_64"),
    plt_entry_sizes=(16,),
)
