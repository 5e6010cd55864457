"""A cache of results by address."""

from __future__ import annotations

from typing import Callable, TypeVar

CACHE_LIMIT = 200_000
"""Maximum number of addresses in a cache, which bounds memory use while a user single-steps for hours."""

_Known = TypeVar("_Known")


class AddressCache(dict[int, _Known]):
    """A dictionary that computes missing values, so that a repeated lookup costs one dictionary access.

    :param compute: returns the value for an address.
    """

    def __init__(self, compute: Callable[[int], _Known]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, pc: int) -> _Known:
        if len(self) >= CACHE_LIMIT:
            self.clear()
        known = self[pc] = self._compute(pc)
        return known
