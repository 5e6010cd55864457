"""Measures several actions alternately, so that other load on the machine affects all of them."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from functools import partial
from typing import Callable


def alternate(rounds: int, actions: Mapping[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Return the time of each action in each round in seconds, after one warm-up round."""
    for action in actions.values():
        action()
    return in_turns(rounds, {name: partial(_seconds, action) for name, action in actions.items()})


def in_turns(rounds: int, measures: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Return what each measurement gives in each round.

    A round does all of them, so that what disturbs the machine disturbs all; every other round goes backwards, so
    that none always comes after the same one.
    """
    times: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(rounds):
        for name in reversed(list(measures)) if number % 2 else measures:
            times[name].append(measures[name]())
    return times


def _seconds(action: Callable[[], object]) -> float:
    # Collect the garbage of earlier rounds first.  The collector stays on for the garbage of this round.
    gc.collect()
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
