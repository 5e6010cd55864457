"""Encodes rules as call frame instructions, and records of ``.debug_frame`` (DWARF 5, 6.4 and 7.24)."""

from __future__ import annotations

import struct

from sframe_unwind.arch import Arch
from sframe_unwind.cfi import constants as c
from sframe_unwind.cfi.expression import DEREF, PLUS, constant, register_plus, word_unless
from sframe_unwind.cfi.leb128 import sleb128, uleb128
from sframe_unwind.unwind_rule import CFA, UNDEFINED, RegisterRule, UnwindRule

DATA_FACTOR = -8
"""Distance between saved registers in bytes, on all supported architectures."""
_VERSION = 3
"""Version of a CIE: the newest one without sizes of addresses and segments; all readers know it."""
_CIE_ID = 0xFFFFFFFF
_ADVANCES = ((c.ADVANCE_LOC1, "B"), (c.ADVANCE_LOC2, "H"), (c.ADVANCE_LOC4, "I"))


def advance(distance: int, mark: str) -> bytes:
    """Return the instruction that advances the location by a number of bytes.

    :param mark: byte order, in the notation of :mod:`struct`.
    """
    if distance <= c.LOW_BITS:
        return bytes([c.ADVANCE_LOC | distance])
    opcode, layout = next(one for one in _ADVANCES if distance < 1 << 8 * struct.calcsize(one[1]))
    return struct.pack(f"{mark}B{layout}", opcode, distance)


def cfa(rule: RegisterRule, added: int = 0) -> bytes:
    """Return the instruction that defines the CFA.

    :param added: what is added to the CFA if it is a word in memory, in bytes.
    """
    if rule.in_memory:
        more = constant(added) + bytes([PLUS]) if added else b""
        word = register_plus(rule.base, rule.offset) + bytes([DEREF])
        return _with_block(bytes([c.DEF_CFA_EXPRESSION]), word + more)
    if rule.offset < 0:
        offset, left = divmod(rule.offset, DATA_FACTOR)
        if left:
            return _with_block(bytes([c.DEF_CFA_EXPRESSION]), register_plus(rule.base, rule.offset))
        return bytes([c.DEF_CFA_SF]) + uleb128(rule.base) + sleb128(offset)
    return bytes([c.DEF_CFA]) + uleb128(rule.base) + uleb128(rule.offset)


def register(number: int, rule: RegisterRule | None) -> bytes:
    """Return the instruction for the location of a register of the caller.

    :param rule: ``None``: the register is unchanged.
    """
    operand = uleb128(number)
    if rule is None:
        return bytes([c.SAME_VALUE]) + operand
    if rule == UNDEFINED:
        return bytes([c.UNDEFINED]) + operand
    if rule.base != CFA and not rule.in_memory and not rule.offset:
        return bytes([c.REGISTER]) + operand + uleb128(rule.base)
    factored, left = divmod(rule.offset, DATA_FACTOR)
    if rule.base != CFA or left:
        opcode = c.EXPRESSION if rule.in_memory else c.VAL_EXPRESSION
        added = constant(rule.offset) + bytes([PLUS])  # the CFA is on the stack already
        return _with_block(
            bytes([opcode]) + operand, added if rule.base == CFA else register_plus(rule.base, rule.offset)
        )
    if not rule.in_memory:
        return bytes([c.VAL_OFFSET_SF]) + operand + sleb128(factored)
    if factored < 0:
        return bytes([c.OFFSET_EXTENDED_SF]) + operand + sleb128(factored)
    if number > c.LOW_BITS:
        return bytes([c.OFFSET_EXTENDED]) + operand + uleb128(factored)
    return bytes([c.OFFSET | number]) + uleb128(factored)


def register_unless(number: int, offset: int, flags: int, bit: int) -> bytes:
    """Return the instruction for a register that is saved at an offset from the CFA, and is 0 if a bit is set.

    :param flags: offset of the word with the bit from the CFA, in bytes.  ``bit`` is the number of the bit.
    """
    return _with_block(bytes([c.VAL_EXPRESSION]) + uleb128(number), word_unless(offset, flags, bit))


def change(before: UnwindRule, after: UnwindRule, arch: Arch, column: int) -> bytes:
    """Return the instructions that change one rule to another.

    :param before: the present rule.  Both rules have a CFA, and no computed values.
    :param column: DWARF number of the return address column.
    """
    code = b""
    if after.cfa is not None and after.cfa != before.cfa:
        code += cfa(after.cfa)
    if after.ra != before.ra:
        code += register(column, after.ra)
    if after.fp != before.fp:
        code += register(arch.fp, after.fp)
    if after.ra_signed != before.ra_signed:
        code += bytes([c.AARCH64_NEGATE_RA_STATE])
    return code


def cie(augmentation: str, column: int, code: bytes, mark: str) -> bytes:
    """Return a CIE of ``.debug_frame`` whose code alignment factor is 1.

    :param augmentation: begins with ``z`` unless it is empty; no letter has data.
    :param column: DWARF number of the return address column.
    :param code: the instructions with which the FDEs begin.
    """
    body = struct.pack(mark + "IB", _CIE_ID, _VERSION) + augmentation.encode() + b"\0"
    body += uleb128(1) + sleb128(DATA_FACTOR) + uleb128(column) + (uleb128(0) if augmentation else b"")
    return _record(body + code, mark)


def fde(cie_offset: int, start: int, size: int, augmented: bool, code: bytes, mark: str) -> bytes:
    """Return an FDE of ``.debug_frame``.

    :param cie_offset: section offset of its CIE, in bytes.
    :param start: address of the function.  ``size`` is its size in bytes.
    :param augmented: the augmentation of the CIE is not empty.
    """
    return _record(struct.pack(mark + "IQQ", cie_offset, start, size) + (uleb128(0) if augmented else b"") + code, mark)


def _record(body: bytes, mark: str) -> bytes:
    body += bytes(-(4 + len(body)) % c.ADDRESS_SIZE)  # DW_CFA_nop
    return struct.pack(mark + "I", len(body)) + body


def _with_block(instruction: bytes, expression: bytes) -> bytes:
    return instruction + uleb128(len(expression)) + expression
