"""Decodes ``DW_CFA_GNU_args_size``: the number of bytes of arguments that are on the stack at a call.

It changes no row.  An unwinder removes the arguments from the stack when it enters a landing pad: in libgcc,
``uw_install_context_1`` adds the size to the stack pointer.
"""

from __future__ import annotations

from sframe_unwind.address import ByteOrder
from sframe_unwind.cfi import constants as c
from sframe_unwind.cfi.operations import operations
from sframe_unwind.named_tuple import NamedTuple


class ArgsSize(NamedTuple):
    """The state from one address to the next one."""

    offset: int
    """Offset from the function's start, in bytes."""
    size: int
    """Number of bytes of arguments on the stack."""


def args_sizes(code: bytes, factor: int, byteorder: ByteOrder) -> list[ArgsSize]:
    """Return the sizes from an FDE's instructions, up to the first instruction that is unknown or malformed.

    :param factor: the CIE's code alignment factor.
    """
    found: list[ArgsSize] = []
    location = 0
    for opcode, operands in operations(code, byteorder):
        if opcode not in (c.ADVANCE_LOC, c.GNU_ARGS_SIZE) or not isinstance(operands[0], int):
            continue
        if opcode == c.ADVANCE_LOC:
            location += operands[0] * factor
        else:
            found.append(ArgsSize(location, operands[0]))
    return found
