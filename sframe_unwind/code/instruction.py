"""One machine instruction as the interpretation needs it: what it writes, where it goes.

An expression is a tuple whose first item is one of the node kinds below.  All expressions of an instruction refer to
the state before it.  Registers are numbered as DWARF numbers them; :data:`HIGH` and the condition code follow behind.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple, Union

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
"""``address, size, signed``: what memory holds, extended to 64 bits."""
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
"""Nothing follows: may be anything."""
SIGN = 14
"""``operand``: a return address gets its authentication code."""
STRIP = 15
"""``operand, checked``: a return address loses its authentication code; if that is checked, it must have one."""
SHIFT_RIGHT = 16
"""``operand, bits, signed``"""
PARTLY = 17
"""``operand``: an operand, most of which is left."""
SCALED = 18
"""``operand, count``: an operand plus that many lengths of scalable vectors, in granules of 8 bytes."""

RESULT: Expression = (COMPUTED,)
ANYTHING: Expression = (UNKNOWN,)

HIGH = 1000
"""Added to a vector register's number: its upper 64 bits."""
CC_OPERATION, CC_LEFT, CC_RIGHT = 2000, 2001, 2002
"""What set the condition code, and with which operands."""


class Kind(IntEnum):
    """Where execution goes after an instruction."""

    NEXT = 0
    JUMP = 1
    CALL = 2
    RETURN = 3
    TRAP = 4
    """A trap: nothing follows, unless the trap's handler goes on behind it."""
    SYSTEM = 5
    """A system call."""
    STOP = 6
    """What follows is not known: the instruction could not be decoded."""


class Condition(NamedTuple):
    """When a conditional jump is taken, as far as that is of use."""

    relation: str
    """``==``, ``!=``, and, of values without a sign, ``<``, ``<=``, ``>``, ``>=``."""
    left: Expression
    right: Expression
    operation: Expression | None
    """What set the condition code, as VEX numbers it; ``None``: the values are compared here and now."""


INVERSE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""The relation that holds where another does not."""


Store = tuple[Expression, Union[int, Expression], Expression]
"""Address, size and value of what an instruction writes to memory.

The size in bytes is a number, or an expression where registers or memory decide it: :data:`ANYTHING` for a size that
is not known at all, in either direction from the address.  With :data:`ANYTHING` for the address, too, any memory may
change.
"""
EVERYWHERE: Store = (ANYTHING, ANYTHING, ANYTHING)
ELSEWHERE: Store = (RESULT, ANYTHING, ANYTHING)
"""A store to memory that no general register leads to."""


class Exit(NamedTuple):
    """A conditional jump."""

    target: Expression
    puts: int
    """How many of the instruction's register writes come before it."""
    stores: int
    """How many of its stores do."""
    condition: Condition | None


class Instruction(NamedTuple):
    """What one instruction does."""

    size: int
    """In bytes."""
    kind: Kind
    puts: tuple[tuple[int, Expression], ...]
    """Registers written, and their new values, in order."""
    stores: tuple[Store, ...]
    """In order."""
    exits: tuple[Exit, ...]
    target: Expression | None
    """Of an unconditional jump or call; of an instruction that executes another (``STOP`` as long as it is not known
    what that does): where it is."""
    link: int | None = None
    """The register that a call leaves its return address in."""

    @property
    def is_whole(self) -> bool:
        """Whether it is known which registers and what memory it may write."""
        return EVERYWHERE not in self.stores
