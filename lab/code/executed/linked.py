"""The planted pairs of one machine, linked to a program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lab.code.executed.judge import Program, link
from lab.code.executed.pairs import Pair, pairs
from lab.code.recipes import Planted, made, source


class Linked(NamedTuple):
    """A program with planted functions."""

    pairs: Sequence[Pair]
    functions: Sequence[Planted]
    """Two for each pair, the right one first."""
    program: Program

    def of_pair(self, number: int) -> Sequence[Planted]:
        """Return the two functions of a pair."""
        return self.functions[2 * number : 2 * number + 2]


def linked(machine: str, folder: Path) -> Linked:
    """Link the pairs of a machine.

    :param machine: name of the machine in :mod:`lab.code.executed.stub`.
    """
    found = pairs(machine)
    functions = made(pair.recipe for pair in found)
    program = link(machine, source(functions), [function.name for function in functions], folder / machine)
    return Linked(found, functions, program)
