"""One machine instruction for the interpretation: the registers and memory that it writes, and where it continues.

An expression is a tuple whose first item is one of the node kinds below.  All expressions of an instruction refer to
the state before it.  Registers have DWARF's numbers; :data:`HIGH` and the condition code have the numbers after them.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Union

from sframe_unwind.named_tuple import NamedTuple

Expression = tuple[Any, ...]

# Node kinds, with what follows in the tuple.
REGISTER = 0
"""``number, offset``: the value of a register plus an offset in bytes."""
CONSTANT = 1
"""``value``"""
PC_RELATIVE = 2
"""``offset``: the address of the instruction plus an offset."""
PAGE_RELATIVE = 3
"""``offset``: the address of the instruction's 4 KiB page plus an offset."""
COMPUTED = 4
"""Nothing follows: a result that is not a copy of anything of interest."""
MIXED = 5
"""``operands``: computed from 64-bit operands in a way that is not followed."""
LOAD = 6
"""``address, size, signed``: the contents of memory, extended to 64 bits; of more than 8 bytes, any word."""
ADD = 7
"""``left, right``"""
SUBTRACT = 8
"""``left, right``"""
AND = 9
"""``operand, mask``"""
SHIFT_LEFT = 10
"""``operand, bits``"""
EXTEND = 11
"""``operand, bits, signed``: the low bits of an operand, extended to 64."""
CHOICE = 12
"""``left, right``: one or the other."""
UNKNOWN = 13
"""``operands``, which follow in the tuple: any value.  If it is an address in the frame, it is near one of theirs."""
SIGN = 14
"""``operand, key``: a return address gets its authentication code, by the A key or the B key with the stack pointer
(0 or 1) or with zero (2 or 3)."""
STRIP = 15
"""``operand, key``: a return address loses its authentication code, which must be that of the key; ``None``: any."""
SHIFT_RIGHT = 16
"""``operand, bits, signed``"""
PARTLY = 17
"""``operand``: an operand of which only a part was changed."""
SCALED = 18
"""``operand, count``: an operand plus that many lengths of scalable vectors, in granules of 8 bytes."""

DIRECTED = 19
"""``forward, backward``: one or the other, by the direction in which AMD64's string instructions proceed."""
LOWER = 20
"""``operand``: an operand whose lower half was computed with: s390x's instructions on 32 bits keep the upper half."""

RESULT: Expression = (COMPUTED,)
ANYTHING: Expression = (UNKNOWN,)

HIGH = 1000
"""Added to a vector register's number: its upper 64 bits."""
CC_OPERATION, CC_LEFT, CC_RIGHT = 2000, 2001, 2002
"""The operation that set the condition code, and its operands."""
DIRECTION = 2003
"""The direction in which AMD64's string instructions proceed: 1 or -1."""
REST = 2004
"""All registers that are not followed: the upper lanes of long vectors, x87 and mask registers, segments' bases, ..."""


class Kind(IntEnum):
    """Where execution goes after an instruction."""

    NEXT = 0
    JUMP = 1
    CALL = 2
    RETURN = 3
    TRAP = 4
    """A trap: nothing follows, unless the trap's handler continues after it."""
    SYSTEM = 5
    """A system call."""
    STOP = 6
    """The next instruction is unknown, because this one could not be decoded."""


class Condition(NamedTuple):
    """The condition of a conditional jump, as far as it is useful."""

    relation: str
    """``==``, ``!=``, and for unsigned values ``<``, ``<=``, ``>``, ``>=``."""
    left: Expression
    right: Expression
    operation: Expression | None
    """The operation that set the condition code, in VEX's numbering; ``None``: the jump itself compares the values."""


INVERSE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""For each relation, the one that holds if it does not."""


Store = tuple[Expression, Union[int, Expression], Expression]
"""Address, size and value that an instruction writes to memory.

The size in bytes is a number, or an expression if registers or memory determine it.  :data:`ANYTHING` is an unknown
size, in either direction from the address.  If the address is also :data:`ANYTHING`, any memory may change.
"""
EVERYWHERE: Store = (ANYTHING, ANYTHING, ANYTHING)
ELSEWHERE: Store = (RESULT, ANYTHING, ANYTHING)
"""A store to memory to which no general register points."""


class Exit(NamedTuple):
    """A conditional jump."""

    target: Expression
    puts: int
    """Number of the instruction's register writes that precede it."""
    stores: int
    """Number of its stores that precede it."""
    condition: Condition | None


class Instruction(NamedTuple):
    """The effects of one instruction."""

    size: int
    """Size in bytes."""
    kind: Kind
    puts: tuple[tuple[int, Expression], ...]
    """Registers written, and their new values, in order."""
    stores: tuple[Store, ...]
    """The stores, in order."""
    exits: tuple[Exit, ...]
    target: Expression | None
    """The target of an unconditional jump or call.  For an instruction that executes another one, the address of the
    other one; its kind is ``STOP`` as long as the effect of the other one is unknown."""
    link: int | None = None
    """The register in which a call leaves its return address."""

    @property
    def is_whole(self) -> bool:
        """Whether all registers and all memory are known that it may write."""
        return EVERYWHERE not in self.stores


def jumps(instruction: Instruction) -> Iterator[int]:
    """Yield the distances in bytes by which an instruction may jump, if they are constant; calls do not count."""
    targets = [leaving.target for leaving in instruction.exits]
    if instruction.kind is Kind.JUMP and instruction.target is not None:
        targets.append(instruction.target)
    yield from (target[1] for target in targets if target[0] == PC_RELATIVE)


def targets(instruction: Instruction) -> Iterator[int | None]:
    """Yield the distances in bytes by which an instruction jumps or calls; ``None``: a distance is not constant."""
    expressions = [leaving.target for leaving in instruction.exits]
    if instruction.kind in (Kind.CALL, Kind.JUMP):
        expressions.append(instruction.target or ())
    for expression in expressions:
        yield expression[1] if expression[:1] == (PC_RELATIVE,) else None
