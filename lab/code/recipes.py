"""Makes functions with a wrong directive, and the same functions with the right one, from recipes.

A recipe is assembly with marks at the start of some lines:

====== =====================================================================================
``-``  only in the right function
``+``  only in the wrong function
``!``  the first instruction at which the wrong function's tables are wrong
====== =====================================================================================

``%cold`` begins the function's cold part, a function of its own in another section; ``NAME`` stands for the function's
name.  The title of a recipe says what is wrong: ``cfa``, ``ra`` or ``fp``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent / "planted"
MACHINES = ("amd64", "aarch64", "s390x")


class Recipe(NamedTuple):
    """One pair of functions."""

    title: str
    what: str
    lines: tuple[str, ...]


class Planted(NamedTuple):
    """One function that was made."""

    name: str
    recipe: Recipe
    is_wrong: bool

    @property
    def label(self) -> str:
        """The symbol of the first wrong instruction."""
        return f"wrong_at_{self.name}"


def read(path: Path) -> list[Recipe]:
    """Return the recipes of a file."""
    found = []
    for text in path.read_text().split("\n== ")[1:]:
        title, _, body = text.partition("\n")
        name, _, what = title.partition(": ")
        found.append(Recipe(name, what, tuple(body.strip("\n").split("\n"))))
    return found


def recipes(machine: str) -> list[Recipe]:
    """Return the recipes for a machine."""
    return read(FOLDER / f"{machine}.txt")


def made(found: Iterable[Recipe]) -> list[Planted]:
    """Return the right function and the wrong one of each recipe."""
    return [
        Planted(f"{'wrong' if is_wrong else 'right'}_{number}", recipe, is_wrong)
        for number, recipe in enumerate(found)
        for is_wrong in (False, True)
    ]


def planted(machine: str) -> list[Planted]:
    """Return the functions for a machine."""
    return made(recipes(machine))


def source(functions: Iterable[Planted]) -> str:
    """Return an assembly source with some functions."""
    lines = ["\t.text"]
    for function in functions:
        lines += _function(function)
    return "\n".join([*lines, '\t.section .note.GNU-stack,"",%progbits', ""])


def _function(function: Planted) -> Iterator[str]:
    current = function.name
    yield "\t.text"
    yield from _begin(current)
    for line in function.recipe.lines:
        mark, rest = (line[0], line[1:].replace("NAME", function.name)) if line else ("", "")
        if line == "%cold":
            yield from _end(current)
            yield '\t.section .text.unlikely,"ax",%progbits'
            current = f"{function.name}.cold"
            yield from _begin(current)
        elif mark == "!":
            yield f"{function.label}:"
            yield rest
        elif mark == ("-" if function.is_wrong else "+"):
            continue
        else:
            yield rest if mark in "-+" else line.replace("NAME", function.name)
    yield from _end(current)


def _begin(name: str) -> Iterator[str]:
    yield f"\t.type {name},%function"
    yield f"{name}:"
    yield "\t.cfi_startproc"


def _end(name: str) -> Iterator[str]:
    yield "\t.cfi_endproc"
    yield f"\t.size {name},.-{name}"
