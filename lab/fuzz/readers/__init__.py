"""Fuzzes input from other sources than the user's files: servers, archives, compressed and loaded symbols.

The number of an input chooses its kind, so all kinds get equally many.
"""

from __future__ import annotations

import functools
from collections import Counter
from random import Random
from types import ModuleType

from lab.fuzz.mutations import Mutator
from lab.fuzz.readers import answers, archives, embedded, loaded, perf_maps
from lab.fuzz.seeds import Seed

KINDS: tuple[ModuleType, ...] = (answers, archives, embedded, loaded, perf_maps)
"""The kinds, each with ``seeds()``, ``fields(seed)`` and ``exercise(seed, seen)``."""
SECONDS = 5.0
MEMORY = 500 << 20
"""Memory limit: compressed data may claim any size."""


def seeds() -> tuple[Seed, ...]:
    """Return all undamaged inputs."""
    return tuple(seed for kind in KINDS for seed in kind.seeds())


@functools.cache
def _mutator(kind: int) -> Mutator:
    return Mutator(KINDS[kind].seeds(), KINDS[kind].fields)


def made(number: int) -> Seed:
    """Return the input of a number; its address is the number, by which the kinds choose how it is used."""
    return _mutator(number % len(KINDS)).mutate(Random(number))._replace(address=number)


def exercise(seed: Seed, seen: Counter[str]) -> None:
    """Read one input, and count the results."""
    kind = KINDS[seed.address % len(KINDS)]
    outcome = kind.exercise(seed, seen)
    seen[f"{kind.__name__.rpartition('.')[2]}: {outcome}"] += 1
