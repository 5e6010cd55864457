"""AArch64; its instructions are little-endian in both byte orders of data."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sframe_unwind.arch import Arch, aarch64
from sframe_unwind.code.instruction import (
    CC_LEFT,
    CC_OPERATION,
    CC_RIGHT,
    REGISTER,
    SIGN,
    STRIP,
    Instruction,
    Kind,
)
from sframe_unwind.code.machines.base import Machine, call, conditional_jump, jump, trap

_SIZE = (4,)
_V0 = 64
_LR = (REGISTER, aarch64.LR, 0)
_SIGNING = {
    0xD503233F,  # paciasp
    0xD503237F,  # pacibsp
    0xD503231F,  # paciaz
    0xD503235F,  # pacibz
    0xDAC103FE,  # pacia x30, sp
    0xDAC107FE,  # pacib x30, sp
}
_STRIPPING = {
    0xD50323BF,  # autiasp
    0xD50323FF,  # autibsp
    0xD503239F,  # autiaz
    0xD50323DF,  # autibz
    0xDAC113FE,  # autia x30, sp
    0xDAC117FE,  # autib x30, sp
    0xD50320FF,  # xpaclri
    0xDAC143FE,  # xpaci x30
}
_RETURNING = {0xD65F0BFF, 0xD65F0FFF}
"""``retaa``, ``retab``."""
_HEXADECIMAL = re.compile(r"0x[0-9a-f]+")
_NOP, _TRAP = 0xD503201F, 0
_RELATIONS = {0: "==", 1: "!=", 2: ">=", 3: "<", 8: ">", 9: "<="}
"""The architecture's condition codes."""
_ALWAYS = (14, 15)
_SUBTRACTIONS = frozenset((3, 4))
"""``ARM64G_CC_OP_SUB32`` and ``SUB64``."""


def _sizes(_code: bytes, _at: int) -> Sequence[int]:
    return _SIZE


def _special(raw: bytes) -> Instruction | None:
    # VEX ignores what the hints do to the return address, and does not know those that are no hints.
    word = int.from_bytes(raw[:4], "little")
    if word in _SIGNING:
        return Instruction(4, Kind.NEXT, ((aarch64.LR, (SIGN, _LR)),), (), (), None)
    if word in _STRIPPING:
        return Instruction(4, Kind.NEXT, ((aarch64.LR, (STRIP, _LR)),), (), (), None)
    if word in _RETURNING:
        return Instruction(4, Kind.RETURN, (), (), (), None)
    if len(raw) < 4:
        return None
    operation = word >> 26
    if operation == 0b000101:  # b
        return jump(4, 4 * _signed(word, 26))
    if operation == 0b100101:  # bl
        return call(4, 4 * _signed(word, 26), aarch64.LR)
    if word >> 24 == 0x54 and not word & 0x10:  # b.cond
        relation = None if word & 0xF in _ALWAYS else _RELATIONS.get(word & 0xF)
        return conditional_jump(4, 4 * _signed(word >> 5, 19), relation)
    return trap(4) if not word >> 16 else None  # udf


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _is_page_relative(raw: bytes) -> bool:
    return int.from_bytes(raw[:4], "little") & 0x9F000000 == 0x90000000  # adrp


def _is_padding(raw: bytes) -> bool:
    return int.from_bytes(raw[:4], "little") in (_NOP, _TRAP)


def _condition(helper: str, constants: Sequence[int]) -> tuple[str, int] | None:
    relation = _RELATIONS.get(constants[0] >> 4) if helper == "arm64g_calculate_condition" else None
    return None if relation is None else (relation, 1)


def _objdump_text(mnemonic: str, operands: str) -> str:
    # objdump writes decimal numbers within brackets and behind them.
    plain, bracket, address = operands.partition("[")
    address = _HEXADECIMAL.sub(lambda found: str(int(found[0], 16)), address)
    return f"{mnemonic} {plain}{bracket}{address}".rstrip()


def _machine(arch: Arch) -> Machine:
    return Machine(
        arch=arch,
        vex_name="ARCH_ARM64_LE",
        vex_registers={
            **{f"x{n}": n for n in range(31)},
            "xsp": aarch64.SP,
            "cc_op": CC_OPERATION,
            "cc_dep1": CC_LEFT,
            "cc_dep2": CC_RIGHT,
        },
        vex_vectors={f"q{n}": _V0 + n for n in range(32)},
        general=tuple(range(32)),
        preserved=frozenset((*range(19, 30), aarch64.SP, *range(_V0 + 8, _V0 + 16))),
        sp_at_entry=0,
        stack_alignment=16,
        ra_slot=None,
        max_size=4,
        sizes=_sizes,
        special=_special,
        system_call=8,
        ending_calls=frozenset((93, 94, 139)),  # exit, exit_group, rt_sigreturn
        is_page_relative=_is_page_relative,
        is_padding=_is_padding,
        condition=_condition,
        comparisons=_SUBTRACTIONS,
        unsigned_comparisons=_SUBTRACTIONS,
        capstone_registers={
            **{f"{size}{n}": n for n in range(31) for size in "xw"},
            "fp": aarch64.FP,
            "lr": aarch64.LR,
            "sp": aarch64.SP,
            "wsp": aarch64.SP,
        },
        returns_through=None,
        att_syntax=False,
        objdump_text=_objdump_text,
        disassembler=("CS_ARCH_ARM64", "CS_MODE_ARM"),
        plt_entry_sizes=(16, 24),
    )


LITTLE = _machine(aarch64.LITTLE)
BIG = _machine(aarch64.BIG)
