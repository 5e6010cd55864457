"""Chooses random commands for both debuggers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Callable

from lab.drive.programs import Build

State = dict[str, Any]
Lines = list[str]
Choice = Callable[[random.Random, State, Build], Lines]
"""Returns the commands of one kind; none if they make no sense in the state."""


def pick(menu: Sequence[tuple[Choice, int]], rng: random.Random, state: State, build: Build) -> Lines:
    """Return the next command, or a few that belong together."""
    choices, weights = zip(*menu)
    while True:
        lines: Lines = rng.choices(choices, weights)[0](rng, state, build)
        if lines:
            return lines


def frames_of(state: State) -> list[list[Any]]:
    frames: list[list[Any]] = state.get("frames", [])
    return frames


def a_function(rng: random.Random, build: Build) -> str:
    return rng.choice(build.program.functions)
