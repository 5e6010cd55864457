"""Follows the constants that code keeps in its frame and loads again, such as the address of a jump table.

A constant is forgotten as soon as something may change it: a slot without one may hold any number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Callable, Final

from sframe_unwind.code.interpret.values import CFA, NUMBER, Value
from sframe_unwind.named_tuple import NamedTuple

_WORD = 8
_MOST = 64
"""Maximum number of constants that are kept."""
_EVERYWHERE: Final = -1 << 64
"""Less than any offset from the CFA."""
_NOWHERE: Final = 1 << 64
"""Greater than any offset from the CFA."""


class Constants(NamedTuple):
    """The constants in a function's frame."""

    known: Mapping[int, int] = {}  # never changed in place
    """By the offset of the word from the CFA, in bytes."""
    exposed: int = _NOWHERE
    """The lowest offset from the CFA whose address callees, or pointers that are not followed, may have.

    What they store by it stays in the object at this address: at or above it."""

    def load(self, address: Value) -> Value | None:
        """Return the constant in the word at an address; ``None``: it is not known."""
        base, offset = address
        found = self.known.get(offset) if base == CFA else None
        return None if found is None else (NUMBER, found)

    def with_constant(self, offset: int, value: int) -> Constants:
        """Return the constants after one more was stored."""
        return self._replace(known={**self.known, offset: value}) if len(self.known) < _MOST else self

    def without(self, may_change: Callable[[int], bool]) -> Constants:
        """Return the constants after something that may change words in the frame, which are given by their offsets."""
        left = {offset: value for offset, value in self.known.items() if not may_change(offset)}
        return self._replace(known=left) if len(left) < len(self.known) else self

    def changed_elsewhere(self) -> Constants:
        """Return the constants after a callee ran, or a store through a pointer that is not followed."""
        return self.without(lambda offset: offset > self.exposed - _WORD)

    def exposing(self, offset: int | None) -> Constants:
        """Return the constants after a callee, or memory, got the address at an offset; ``None``: any address."""
        lowest = _EVERYWHERE if offset is None else offset
        return self._replace(exposed=lowest) if lowest < self.exposed else self

    def shared(self, other: Constants) -> Constants:
        """Return the constants that hold in two states."""
        common = self.without(lambda offset: other.known.get(offset) != self.known[offset])
        return common._replace(exposed=other.exposed) if other.exposed < self.exposed else common


NO_CONSTANTS: Final = Constants()
