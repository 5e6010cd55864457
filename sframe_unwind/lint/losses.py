"""Computes for how many bytes of a function's code a consumer has no row."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from sframe_unwind.address import merged
from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.catalogue import Rule
from sframe_unwind.lint.functions import Described
from sframe_unwind.lint.profiles import Kind, Profile

_IN_PART = (c.FIRST_ROW_LATE, c.NO_ROWS_OF_FUNCTION, c.SIGNAL_WITHOUT_ROWS, c.CFA_NOT_REGISTER, c.OUTERMOST)
"""Rules that concern a part of a function; :attr:`Described.pieces` has these parts."""

Lost = tuple[Described, int, tuple[Rule, ...]]
"""A function, the number of its bytes that are lost, and the rules that cause this."""


def own_losses(
    functions: Iterable[Described], profile: Profile, elsewhere: Mapping[int, Sequence[Rule]]
) -> Iterator[Lost]:
    """Yield the functions that are lost, at least in part, if a search finds each by its own extent.

    :param elsewhere: by the section offset of an FDE, the rules about the order of functions that it breaks.
    """
    for function in functions:
        one = _Function(function, profile, elsewhere.get(function.offset, ()))
        if size := one.lost(function.size):
            yield function, size, one.rules


def nearest_losses(
    functions: Iterable[Described], profile: Profile, elsewhere: Mapping[int, Sequence[Rule]]
) -> Iterator[Lost]:
    """Yield the functions that are lost, at least in part, if a search takes the last start before an address.

    If functions overlap, a part of one after the start of the next one is found only as far as the next one reaches.

    :param functions: no two begin at one address.
    """
    ordered = sorted(functions, key=lambda function: function.start)
    known = [_Function(function, profile, elsewhere.get(function.offset, ())) for function in ordered]
    starts = [function.start for function in ordered]
    # For each start, the number of bytes since the first one that are not found.
    missing = list(accumulate((one.missing(end) for one, end in zip(known, starts[1:])), initial=0))
    for number, (function, one) in enumerate(zip(ordered, known)):
        last = bisect_left(starts, function.end, lo=number) - 1
        if last <= number:
            size, rules = one.lost(function.size), one.rules
        else:
            size = missing[last] - missing[number] + known[last].missing(function.end)
            rules = (*one.rules, c.FDE_OVERLAP)
        if size:
            yield function, size, rules


class _Function:
    """A function, and the parts of it that a consumer loses."""

    def __init__(self, function: Described, profile: Profile, elsewhere: Sequence[Rule]) -> None:
        def loses(rule: Rule) -> bool:
            effect = profile.effects.get(rule)
            return effect is not None and effect.kind is Kind.LOSES and rule is not c.FDE_OVERLAP

        whole = [rule for rule in (*(rule for rule, _ in function.broken), *elsewhere) if loses(rule)]
        whole = [rule for rule in whole if rule not in _IN_PART]
        pieces = [piece for piece in function.pieces if loses(piece.rule)]
        self._function = function
        self._whole = bool(whole)
        self._pieces = [] if whole else merged((piece.low, piece.high) for piece in pieces)
        self.rules: tuple[Rule, ...] = tuple(whole or dict.fromkeys(piece.rule for piece in pieces))

    def lost(self, size: int) -> int:
        """Return how many of the function's first bytes are lost.

        :param size: at most the size of the function.
        """
        if self._whole:
            return size
        if not self._pieces:
            return 0
        repetition = self._function.repetition
        if not repetition:
            return self._within(size)
        blocks, rest = divmod(size, repetition)
        return blocks * self._within(repetition) + self._within(rest)

    def missing(self, end: int) -> int:
        """Return how many bytes from the function's start to an address are not found by its FDE."""
        size = end - self._function.start
        own = min(size, self._function.size)
        return self.lost(own) + size - own

    def _within(self, size: int) -> int:
        return sum(max(min(high, size) - low, 0) for low, high in self._pieces)
