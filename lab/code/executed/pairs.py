"""Families of planted pairs: a right function and a wrong one that differ only in the line at a mark.

A family is a recipe of :mod:`lab.code.recipes` with a line ``@`` in it.  After ``each:``, it has a line for each of
its pairs: the line of the right function, ``|``, and the line of the wrong one.  A ``{NAME}`` before them replaces
``REG`` in the recipe.  ``?`` marks instructions that QEMU does not execute as processors do: it is then only known
that the wrong function is wrong at the instruction marked with ``!``.  ``*`` marks a pair of which one was once proved
falsely, or falsely called wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lab.code.recipes import Recipe, read

FOLDER = Path(__file__).resolve().parent
_PARTS = ("", "_frames", "_carried", "_hidden", "_kept", "_callees", "_apart", "_mixed")
_VARIANT = re.compile(r"([?*] )?(?:\{(.*?)\} )?(.*)")


class Pair(NamedTuple):
    """A right function and a wrong one."""

    recipe: Recipe
    is_executed: bool
    is_mended: bool


def pairs(machine: str) -> list[Pair]:
    """Return the pairs for a machine."""
    paths = [path for part in _PARTS if (path := FOLDER / f"{machine}{part}.txt").exists()]
    return [pair for path in paths for family in read(path) for pair in _of_family(family)]


def _of_family(family: Recipe) -> Iterator[Pair]:
    at = family.lines.index("each:")
    for line in family.lines[at + 1 :]:
        marks, register, rest = _VARIANT.match(line.strip()).groups("")  # type: ignore[union-attr]
        right, _, wrong = rest.partition(" | ")
        chosen = ["before_NAME:", f"-{right}", f"+{wrong}", "after_NAME:"]
        lines = [known.replace("REG", register) for known in family.lines[:at]]
        place = lines.index("    @")
        title = f"{family.title}: {register} {rest}"
        yield Pair(
            Recipe(title, family.what, (*lines[:place], *chosen, *lines[place + 1 :])), "?" not in marks, "*" in marks
        )
