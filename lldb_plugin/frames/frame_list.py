"""A list of the frames of a stack, in which those of a recursion are made when they are asked for.

LLDB looks at few frames of a deep stack, such as that of a stack overflow, and all work is done at each stop.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Callable, Generic, TypeVar

from sframe_unwind.unwind.recursion import Repetition

T = TypeVar("T")


class FrameList(Generic[T]):
    """A list to which frames, and rounds of a recursion, can be added at the outer end.

    :param move: ``(thing, repetition, rounds)``: returns a thing as it is some rounds of a recursion further out.
    """

    def __init__(self, move: Callable[[T, Repetition, int], T]) -> None:
        self._move = move
        self._starts = [0]
        """The index of the first thing of each part."""
        self._parts: list[tuple[list[T], Repetition | None]] = [([], None)]
        """Consecutive things; those of a recursion are the things of the round before its first one."""
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return (self[index] for index in range(self._length))

    def __getitem__(self, index: int) -> T:
        if index < 0:
            index += self._length
        if not 0 <= index < self._length:
            raise IndexError(index)
        number = bisect_right(self._starts, index) - 1
        things, repetition = self._parts[number]
        place = index - self._starts[number]
        if repetition is None:
            return things[place]
        rounds, place = divmod(place, len(things))
        return self._move(things[place], repetition, rounds + 1)

    def __setitem__(self, index: int, thing: T) -> None:
        """Replace a thing that is in no recursion."""
        number = bisect_right(self._starts, index) - 1
        self._parts[number][0][index - self._starts[number]] = thing

    def plain(self) -> list[T] | None:
        """Return all things; ``None``: there is a recursion."""
        return self._parts[0][0] if len(self._parts) == 1 else None

    def extend(self, things: Sequence[T]) -> None:
        """Add things."""
        if self._parts[-1][1] is not None:
            self._starts.append(self._length)
            self._parts.append(([], None))
        self._parts[-1][0].extend(things)
        self._length += len(things)

    def repeat(self, things: list[T], repetition: Repetition) -> None:
        """Add the rounds of a recursion.

        :param things: those of the round before the first one, which were added last.
        """
        self._starts.append(self._length)
        self._parts.append((things, repetition))
        self._length += len(things) * repetition.rounds
