"""Measures several actions alternately, so that other load on the machine affects all of them."""

from __future__ import annotations

import gc
import resource
from collections.abc import Mapping
from functools import partial
from typing import Callable

Clock = Callable[[], float]
"""Returns a time in seconds."""


def processor_seconds() -> float:
    """Return the processor time of this process and of its children that have ended: other work hardly changes it."""
    used = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(one.ru_utime + one.ru_stime for one in used)


def alternate(
    rounds: int, actions: Mapping[str, Callable[[], object]], clock: Clock = processor_seconds
) -> dict[str, list[float]]:
    """Return the time of each action in each round in seconds, after one warm-up round."""
    for action in actions.values():
        action()
    return in_turns(rounds, {name: partial(_seconds, action, clock) for name, action in actions.items()})


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


def _seconds(action: Callable[[], object], clock: Clock) -> float:
    # Collect the garbage of earlier rounds first.  The collector stays on for the garbage of this round.
    gc.collect()
    started = clock()
    action()
    return clock() - started
