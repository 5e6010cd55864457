"""``DW_CFA_GNU_args_size``: how many bytes of arguments are on the stack at a call.

It changes no row.  An unwinder takes the arguments off the stack where it enters a landing pad: in libgcc
``uw_install_context_1`` adds the size to the stack pointer.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from sframe_unwind.cfi import constants as c
from sframe_unwind.cfi.row_state import OPERANDS, read_operands

_ADVANCES = {c.ADVANCE_LOC1: 1, c.ADVANCE_LOC2: 2, c.ADVANCE_LOC4: 4, c.MIPS_ADVANCE_LOC8: 8}
"""Sizes of their operands in bytes."""
_NO_OPERANDS = (
    *(c.NOP, c.REMEMBER_STATE, c.RESTORE_STATE),
    *(c.AARCH64_NEGATE_RA_STATE, c.AARCH64_NEGATE_RA_STATE_WITH_PC),
)


class ArgsSize(NamedTuple):
    """What holds from one address to the next one's."""

    offset: int
    """From the function's start, in bytes."""
    size: int
    """Bytes of arguments on the stack."""


def args_sizes(code: bytes, factor: int, byteorder: Literal["little", "big"]) -> list[ArgsSize]:
    """Return the sizes that an FDE's instructions say; what follows an instruction that is not known is left out.

    :param factor: the CIE's code alignment factor.
    :raises FormatError: an instruction is malformed.
    """
    found: list[ArgsSize] = []
    location = at = 0
    while at < len(code):
        opcode, at = code[at], at + 1
        primary = opcode & ~c.LOW_BITS
        if primary == c.ADVANCE_LOC:
            location += (opcode & c.LOW_BITS) * factor
        elif primary == c.OFFSET:
            _, at = read_operands(code, at, "u")
        elif opcode in _ADVANCES:
            end = at + _ADVANCES[opcode]
            location += int.from_bytes(code[at:end], byteorder) * factor
            at = end
        elif opcode in OPERANDS:
            operands, at = read_operands(code, at, OPERANDS[opcode])
            if opcode == c.GNU_ARGS_SIZE and isinstance(operands[0], int):
                found.append(ArgsSize(location, operands[0]))
        elif primary != c.RESTORE and opcode not in _NO_OPERANDS:
            break
    return found
