"""The static branches of Linux: a jump that the kernel replaces by a nop, and a nop by that jump, while it runs.

``__jump_table`` has a ``struct jump_entry`` for each: where the code is and where the jump leads, as distances of 32
bits from these fields, and a pointer to the key that decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sframe_unwind.address import ADDRESS_MASK, Range
from sframe_unwind.code.decode.instruction import PC_RELATIVE, Exit, Instruction, Kind
from sframe_unwind.code.image.code_image import CodeImage

_ENTRY, _FIELD = 16, 4
"""Sizes in bytes of an entry and of its first two fields."""


def static_branches(image: CodeImage, tables: Iterable[Range]) -> Mapping[int, int]:
    """Return the targets of a kernel's static branches by the addresses of their instructions.

    :param tables: where the image has entries.
    """
    found = {}
    for start, end in tables:
        for entry in range(start, end - _ENTRY + 1, _ENTRY):
            code, target = _place(image, entry), _place(image, entry + _FIELD)
            if code is not None and target is not None and image.is_code(code):
                found[code] = target
    return found


def _place(image: CodeImage, field: int) -> int | None:
    distance = image.read(field, _FIELD)
    if distance is None:
        return None
    sign = 1 << 8 * _FIELD - 1
    return field + (distance ^ sign) - sign & ADDRESS_MASK


def either_way(found: Instruction, pc: int, target: int) -> Instruction:
    """Return the jump or nop of a static branch as an instruction that continues after it or at the target.

    Any other instruction is returned unchanged.
    """
    leads_there = (PC_RELATIVE, target - pc)
    is_jump = found.kind is Kind.JUMP and found.target == leads_there
    if found.size and (
        is_jump or found == Instruction(size=found.size, kind=Kind.NEXT, puts=(), stores=(), exits=(), target=None)
    ):
        return Instruction(
            size=found.size, kind=Kind.NEXT, puts=(), stores=(), exits=(Exit(leads_there, 0, 0, None),), target=None
        )
    return found
