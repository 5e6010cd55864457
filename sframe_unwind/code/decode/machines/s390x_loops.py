"""s390x's loops over blocks of 256 bytes, to which compilers expand ``memset`` and ``memcpy``.

The rest has an instruction of its own, whose length a register holds (``exrl``).  So the loop stores a part of one
object, whose size a register holds, too: most often none, since objects in a frame are smaller than 256 bytes.
"""

from __future__ import annotations

from sframe_unwind.code.decode.folding import unknown
from sframe_unwind.code.decode.instruction import (
    ADD,
    CONSTANT,
    EXTEND,
    LOAD,
    REGISTER,
    RESULT,
    SHIFT_LEFT,
    Expression,
    Instruction,
    Kind,
)
from sframe_unwind.code.decode.machines.base import writing

_STORING = (0xD2, 0xD7)
"""First bytes of ``mvc`` and ``xc``."""
_MVI, _LA, _BRCT = 0x92, 0x41, 0xA7
_PFD = b"\xe3", b"\x36"
_BLOCK = 256


def in_block_loop(code: bytes, at: int) -> Instruction | None:
    """Return the effects of an instruction at an offset in some code, if it is in such a loop and writes anything."""
    if code[at] in _STORING:
        return _stored(code, at)
    if code[at] == _LA:
        before = (at - distance for distance in (6, 10) if at >= distance)
        if any(code[one] in _STORING and _counter(code, one) is not None for one in before):
            register = code[at + 1] >> 4
            moved = ADD, (REGISTER, register, 0), RESULT
            return Instruction(size=4, kind=Kind.NEXT, puts=((register, moved),), stores=(), exits=(), target=None)
    return None


def _stored(code: bytes, at: int) -> Instruction | None:
    count = _counter(code, at)
    if count is None:
        return None
    rounds: Expression = (REGISTER, count, -1)
    size = ADD, (SHIFT_LEFT, (EXTEND, rounds, 32, False), 8), (CONSTANT, _BLOCK)
    place, source = _place(code[at + 2 : at + 4]), _place(code[at + 4 : at + 6])
    value = unknown((LOAD, (ADD, source, RESULT), 8, False))
    return writing(6, (), ((place, size, value),))


def _place(field: bytes) -> Expression:
    return REGISTER, field[0] >> 4, (field[0] & 0xF) << 8 | field[1]


def _counter(code: bytes, at: int) -> int | None:
    """Return the register that counts the rounds of a loop; ``None``: the store at an offset is in no such loop.

    Besides the store of a block, the loop only has a store of its first byte, prefetches, and what moves and counts.
    """
    raw = code[at : at + 6]
    if len(raw) < 6 or raw[1] < _BLOCK - 2:
        return None
    moved, after = set(), at + 6
    while (register := _moved(code[after : after + 4])) is not None:
        moved.add(register)
        after += 4
    jump = code[after : after + 4]
    if len(jump) < 4 or jump[0] != _BRCT or jump[1] & 0xF not in (6, 7):
        return None
    count, start = jump[1] >> 4, after + 2 * int.from_bytes(jump[2:], "big", signed=True)
    places = {raw[2] >> 4, raw[4] >> 4}
    if raw[2] >> 4 not in moved or count in moved or (count and count in places):
        return None
    while 0 <= start < at:
        step = code[start : start + 6]
        is_prefetch = (step[:1], step[5:]) == _PFD
        if not is_prefetch and step[0] != _MVI:
            return None
        start += 6 if is_prefetch else 4
    return count if start == at else None


def _moved(raw: bytes) -> int | None:
    """Return the register that an instruction moves to the next block."""
    register = raw[1] >> 4 if len(raw) == 4 and raw[0] == _LA else 0
    is_next = register and not raw[1] & 0xF and raw[2] >> 4 == register and _place(raw[2:])[2] == _BLOCK
    return register if is_next else None
