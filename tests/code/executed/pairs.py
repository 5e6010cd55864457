"""Families of planted pairs, in which a right function and a wrong one differ in what stands for a mark.

A family is a recipe of :mod:`tests.code.recipes` with a line ``@`` in it.  Behind ``each:`` it has a line for each of
its pairs: what stands there in the right function, and after ``|`` what stands there in the wrong one.  ``{NAME}`` in
front takes the place of ``REG`` in the recipe; ``?`` says that QEMU does not execute the instructions as processors do,
so that no more is known than that the wrong function is wrong at the instruction marked with ``!``; ``*`` marks a
pair of which one was once proved falsely, or accused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.code.recipes import Recipe, read

FOLDER = Path(__file__).resolve().parent
_VARIANT = re.compile(r"([?*] )?(?:\{(.*?)\} )?(.*)")


class Pair(NamedTuple):
    """A right function and a wrong one."""

    recipe: Recipe
    is_executed: bool
    is_mended: bool


def pairs(machine: str) -> list[Pair]:
    """Return the pairs for a machine."""
    return [pair for family in read(FOLDER / f"{machine}.txt") for pair in _of_family(family)]


def _of_family(family: Recipe) -> Iterator[Pair]:
    at = family.lines.index("each:")
    for line in family.lines[at + 1 :]:
        marks, register, rest = _VARIANT.match(line.strip()).groups("")  # type: ignore[union-attr]
        right, _, wrong = rest.partition(" | ")
        chosen = ["before_NAME:", f"-{right}", f"+{wrong}", "behind_NAME:"]
        lines = [known.replace("REG", register) for known in family.lines[:at]]
        place = lines.index("    @")
        title = f"{family.title}: {register} {rest}"
        yield Pair(
            Recipe(title, family.what, (*lines[:place], *chosen, *lines[place + 1 :])), "?" not in marks, "*" in marks
        )
