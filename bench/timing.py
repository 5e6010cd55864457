"""Measures several actions alternately, so that other load on the machine affects all of them."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from typing import Callable


def alternate(rounds: int, actions: Mapping[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Return the time of each action in each round in seconds, after one warm-up round.

    A round does all of them, so that what disturbs the machine disturbs all; every other round goes backwards, so
    that none always comes after the same one.
    """
    times: dict[str, list[float]] = {name: [] for name in actions}
    for action in actions.values():
        action()
    for number in range(rounds):
        for name in reversed(list(actions)) if number % 2 else actions:
            times[name].append(_seconds(actions[name]))
    return times


def _seconds(action: Callable[[], object]) -> float:
    # Collect the garbage of earlier rounds first.  The collector stays on for the garbage of this round.
    gc.collect()
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
