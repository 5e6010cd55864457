"""Makes instructions that differ only in a few numbers from two of them that were lifted.

Many distinct instructions of a program differ only in their registers, in a distance from the stack pointer or from the
instruction, or in a constant.  A machine's ``shape`` (:mod:`sframe_unwind.code.decode.machines`) takes these parameters
out of an instruction's bytes; the rest is the key of a shape.  Two lifted instructions of one shape whose parameters
all differ show where these are in the result.  If the results are otherwise equal, other instructions of the shape are
made by inserting their parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sframe_unwind.code.decode.instruction import Instruction
from sframe_unwind.code.decode.machines.base import Shape
from sframe_unwind.named_tuple import NamedTuple

_MAX_SHAPES = 32_000
"""Maximum number of shapes that are kept: 8 MB.  A library of 100 MB has more than 200,000, most of them once."""


class _First(NamedTuple):
    """The first lifted instruction of a shape."""

    shape: Shape
    lifted: Instruction


class _Place(NamedTuple):
    """A number in an instruction that depends on a parameter."""

    parameter: int
    """Index of the parameter: the numbers come first, then the registers and the size."""
    start: int
    """Its value if the parameter is 0."""
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


class _Ambiguous(Exception):  # noqa: N818  # no error: another instruction of the shape is waited for
    """More than one parameter could be the reason of a difference."""


class Shapes:
    """The known shapes of one machine."""

    def __init__(self) -> None:
        self._known: dict[bytes, _First | _Node | None] = {}

    def instruction(self, shape: Shape) -> Instruction | None:
        """Return the instruction that has a shape; ``None``: it has to be lifted."""
        known = self._known.get(shape.key)
        if isinstance(known, _Node):
            found: Instruction = _filled(known, (*shape.numbers, *shape.registers, shape.size))
            return found
        return None

    def learn(self, shape: Shape, lifted: Instruction) -> None:
        """Take the result of lifting an instruction."""
        if shape.key not in self._known or lifted.size != shape.size:
            if len(self._known) >= _MAX_SHAPES:
                self._forget()
            self._known[shape.key] = _First(shape, lifted) if lifted.size == shape.size else None
            return
        known = self._known[shape.key]
        if isinstance(known, _First) and _all_differ(known.shape, shape):
            try:
                self._known[shape.key] = _template(known, _First(shape, lifted))
            except _Differs:
                self._known[shape.key] = None
            except _Ambiguous:
                pass

    def _forget(self) -> None:
        """Forget the shapes of which only one instruction is known so far; if too many are left, forget all shapes."""
        for key in [key for key, found in self._known.items() if isinstance(found, _First)]:
            del self._known[key]
        if len(self._known) > _MAX_SHAPES // 2:
            self._known.clear()


def _all_differ(one: Shape, other: Shape) -> bool:
    pairs = zip(one.numbers + one.registers, other.numbers + other.registers)
    return all(left != right for left, right in pairs)


def _template(first: _First, second: _First) -> _Node:
    """Return what two instructions of one shape have in common; the size is always inserted."""
    one, other = (found.lifted._replace(size=0) for found in (first, second))
    common = _common(one, other, first.shape, second.shape)
    items, filled = common[1:] if isinstance(common, _Node) else (common, ())
    size = _Place(len(second.shape.numbers) + len(second.shape.registers), 0, 1)
    return _Node(Instruction, (size, *items[1:]), (0, *filled))


def _common(one: Any, other: Any, shape: Shape, changed: Shape) -> Any:
    """Return the common part of two instructions with these shapes; equal ones are returned unchanged."""
    if isinstance(one, tuple) and type(one) is type(other) and len(one) == len(other):
        items = tuple(_common(left, right, shape, changed) for left, right in zip(one, other))
        filled = tuple(number for number, item in enumerate(items) if isinstance(item, (_Node, _Place)))
        return _Node(type(one), items, filled) if filled else one
    if one == other and type(one) is type(other):
        return one
    if type(one) is int and type(other) is int:
        places = list(_places(one, other, shape, changed))
        if len(places) > 1:
            raise _Ambiguous
        if places:
            return places[0]
    raise _Differs


def _places(one: int, other: int, shape: Shape, changed: Shape) -> Iterator[_Place]:
    """Yield how two numbers may depend on a parameter of the two shapes."""
    for parameter, (before, after) in enumerate(zip(shape.numbers, changed.numbers)):
        for factor in (1, -1):
            if other - one == factor * (after - before):
                yield _Place(parameter, one - factor * before, factor)
    for parameter, pair in enumerate(zip(shape.registers, changed.registers), len(shape.numbers)):
        if pair == (one, other):
            yield _Place(parameter, 0, 1)


def _filled(node: _Node, parameters: tuple[int, ...]) -> Any:
    kind, items, filled = node
    result = list(items)
    for number in filled:
        item = items[number]
        if type(item) is _Place:
            parameter, start, factor = item
            result[number] = start + factor * parameters[parameter]
        else:
            result[number] = _filled(item, parameters)
    return tuple(result) if kind is tuple else kind(*result)
