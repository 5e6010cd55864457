"""Recognises an SFrame section that a tool moved after linking, so that the addresses in it are those of other code.

The addresses of functions are relative to their place in the section, so all of them have moved by as many bytes.  CFI,
whose addresses a tool such as patchelf corrects, still begins where the functions do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sframe_unwind.address import Range
from sframe_unwind.errors import counted

_LOOKED_AT = 64
"""Maximum number of functions that are compared."""
_FEWEST = 4
"""Minimum number of functions: a few can be at the distances of others by chance."""
_WITHOUT_CFI = 8
"""Of so many functions, one may have no CFI, such as the start of a program."""


def displacement(starts: Iterable[int], described: Iterable[Range]) -> int:
    """Return by how many bytes the functions of a section are too low, compared with those of the CFI.

    :param starts: where the functions of the section begin.
    :param described: the ranges that the CFI of the file describes.
    :return: 0: they are right, or have no common distance from those of the CFI.
    """
    chosen = some_of(starts)
    if len(chosen) < _FEWEST:
        return 0
    right = {start for start, _ in described}
    allowed = len(chosen) // _WITHOUT_CFI
    for first in chosen[: allowed + 1]:
        for distance in (0, *(start - first for start in right)):
            if _is_common(distance, chosen, right, allowed):
                return distance
    return 0


def some_of(starts: Iterable[int]) -> list[int]:
    """Return those of the starts of functions that are looked at, in order."""
    ordered = sorted(set(starts))
    return ordered[:: len(ordered) // _LOOKED_AT + 1]


def told(distance: int) -> str:
    """Return the fact that a section is displaced by a distance, in words."""
    too = f"{counted(abs(distance), 'byte')} too {'low' if distance > 0 else 'high'}"
    return f"the section was moved after linking: its functions are {too}, compared with those of the CFI"


def _is_common(distance: int, starts: Sequence[int], right: set[int], allowed: int) -> bool:
    """Return whether starts are right after a distance is added to them, all but an allowed number."""
    wrong = 0
    for start in starts:
        wrong += start + distance not in right
        if wrong > allowed:
            return False
    return True
