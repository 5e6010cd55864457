"""Lists call frame instructions one by one, for uses that need the origin of a row."""

from __future__ import annotations

from collections.abc import Iterator

from sframe_unwind.address import ByteOrder
from sframe_unwind.cfi import constants as c
from sframe_unwind.cfi.leb128 import read_uleb128
from sframe_unwind.cfi.row_state import OPERANDS, Operand, read_operands
from sframe_unwind.errors import FormatError
from sframe_unwind.named_tuple import NamedTuple

_ADVANCES = {c.ADVANCE_LOC1: 1, c.ADVANCE_LOC2: 2, c.ADVANCE_LOC4: 4, c.MIPS_ADVANCE_LOC8: 8}
"""Size of the operand in bytes, by opcode."""
_ALONE = (*(c.NOP, c.REMEMBER_STATE, c.RESTORE_STATE, c.AARCH64_NEGATE_RA_STATE, c.AARCH64_NEGATE_RA_STATE_WITH_PC),)
"""Instructions without operands."""


class Operation(NamedTuple):
    """One call frame instruction (DWARF 5, 6.4.2)."""

    opcode: int
    """The opcode, without the operand that some instructions have in its low six bits."""
    operands: tuple[Operand, ...]
    """Registers, factored offsets, factored distances and expressions."""


def operations(code: bytes, byteorder: ByteOrder) -> Iterator[Operation]:
    """Yield the instructions of an FDE or a CIE, up to the first that is unknown, malformed, or ``DW_CFA_set_loc``.

    Each instruction that advances the location is yielded as ``DW_CFA_advance_loc``.

    :param byteorder: byte order of the file.
    """
    at = 0
    while at < len(code):
        opcode, at = code[at], at + 1
        primary, low = opcode & ~c.LOW_BITS, opcode & c.LOW_BITS
        try:
            if primary == c.ADVANCE_LOC:
                yield Operation(c.ADVANCE_LOC, (low,))
            elif primary == c.OFFSET:
                factored, at = read_uleb128(code, at)
                yield Operation(c.OFFSET, (low, factored))
            elif primary == c.RESTORE:
                yield Operation(c.RESTORE, (low,))
            elif opcode in _ALONE:
                yield Operation(opcode, ())
            elif opcode in _ADVANCES:
                end = at + _ADVANCES[opcode]
                yield Operation(c.ADVANCE_LOC, (int.from_bytes(code[at:end], byteorder),))
                at = end
            elif opcode in OPERANDS:
                operands, at = read_operands(code, at, OPERANDS[opcode])
                yield Operation(opcode, tuple(operands))
            else:
                return
        except FormatError:
            return
