"""Makes instructions that differ only in a displacement from two of them that were lifted.

Many distinct instructions of a program differ only in a distance from the stack pointer or from the instruction.  A
machine's ``shape`` (:mod:`sframe_unwind.code.decode.machines`) takes this displacement out of an instruction's bytes;
the rest is the key of a shape.  Two lifted instructions of one shape show where the displacement is in the result.  If
the results are otherwise equal, other instructions of the shape are made by inserting their displacements.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sframe_unwind.code.decode.instruction import Instruction
from sframe_unwind.code.decode.machines.base import Shape

_MAX_SHAPES = 32_000
"""Maximum number of shapes that are kept: 8 MB.  A library of 100 MB has more than 200,000, most of them once."""


class _First(NamedTuple):
    """The only instruction of a shape so far."""

    displacement: int
    lifted: Instruction


class _Place(NamedTuple):
    """A number in an instruction that depends on the displacement."""

    start: int
    """Its value if the displacement is 0."""
    factor: int
    """1 or -1."""


class _Node(NamedTuple):
    """A tuple that contains such numbers."""

    kind: type
    items: tuple[Any, ...]
    filled: tuple[int, ...]
    """The indexes of the items that are or contain such numbers."""


class _Differs(Exception):  # noqa: N818  # no error: the shape's instructions are lifted one by one
    pass


class Shapes:
    """The known shapes of one machine."""

    def __init__(self) -> None:
        self._known: dict[bytes, _First | _Node | Instruction | None] = {}

    def instruction(self, shape: Shape) -> Instruction | None:
        """Return the instruction that has a shape; ``None``: it has to be lifted."""
        known = self._known.get(shape.key)
        if isinstance(known, _Node):
            found: Instruction = _filled(known, shape.displacement)
            return found
        return known if isinstance(known, Instruction) else None

    def learn(self, shape: Shape, lifted: Instruction) -> None:
        """Take the result of lifting an instruction."""
        if shape.key not in self._known or lifted.size != shape.size:
            if len(self._known) >= _MAX_SHAPES:
                self._forget()
            self._known[shape.key] = _First(shape.displacement, lifted) if lifted.size == shape.size else None
            return
        known = self._known[shape.key]
        if isinstance(known, _First) and known.displacement != shape.displacement:
            try:
                self._known[shape.key] = _common(known.lifted, lifted, known.displacement, shape.displacement)
            except _Differs:
                self._known[shape.key] = None

    def _forget(self) -> None:
        """Forget the shapes that only one instruction had so far; if too many are left, forget all shapes."""
        for key in [key for key, found in self._known.items() if isinstance(found, _First)]:
            del self._known[key]
        if len(self._known) > _MAX_SHAPES // 2:
            self._known.clear()


def _common(one: Any, other: Any, displacement: int, changed: int) -> Any:
    """Return the common part of two instructions with these displacements; equal ones are returned unchanged."""
    if isinstance(one, tuple) and type(one) is type(other) and len(one) == len(other):
        items = tuple(_common(left, right, displacement, changed) for left, right in zip(one, other))
        filled = tuple(number for number, item in enumerate(items) if isinstance(item, (_Node, _Place)))
        return _Node(type(one), items, filled) if filled else one
    if one == other and type(one) is type(other):
        return one
    if type(one) is int and type(other) is int:
        for factor in (1, -1):
            if other - one == factor * (changed - displacement):
                return _Place(one - factor * displacement, factor)
    raise _Differs


def _filled(node: _Node, displacement: int) -> Any:
    kind, items, filled = node
    result = list(items)
    for number in filled:
        item = items[number]
        if type(item) is _Place:
            result[number] = item.start + item.factor * displacement
        else:
            result[number] = _filled(item, displacement)
    return tuple(result) if kind is tuple else kind(*result)
