"""A command of this project beside a tool of others that does the nearest work, both as whole processes."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from bench.processes import processor_time
from bench.report import Row, Target, medians, ratios
from bench.timing import in_turns


class Pair(NamedTuple):
    """A command of this project, and the tool that it is compared with."""

    what: str
    command: Sequence[str]
    peer: Sequence[str]
    target: Target
    statuses: Sequence[int] = (0,)
    """Expected exit statuses of the command."""
    rounds: int = 7


def pair_row(part: str, pair: Pair) -> Row:
    """Measure a command and its peer in turns; the values are the ratios of each round."""
    if shutil.which(pair.peer[0]) is None:
        why = f"{pair.peer[0]} is not installed"
        return Row(part=part, what=pair.what, values=(), unit="x", target=pair.target, detail=why)
    times = in_turns(
        pair.rounds,
        {
            "this": partial(processor_time, pair.command, pair.statuses),
            "peer": partial(processor_time, pair.peer),
        },
    )
    return Row(
        part=part,
        what=pair.what,
        values=ratios(times["this"], times["peer"]),
        unit="x",
        target=pair.target,
        detail=medians("s", **times),
    )
