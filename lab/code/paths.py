"""Paths through the blocks of a function."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, Optional

_WALK = 24
"""Number of blocks after an edge that is in no shortest path."""


class Edge(NamedTuple):
    """A way from one block to another."""

    block: int
    pc: int
    """Address of the instruction that leaves the block."""
    following: int


class Step(NamedTuple):
    """One block of a path."""

    block: int
    leaving: int | None
    """The address of the instruction that leads to the next one; ``None``: it is the last."""


_Ways = Mapping[int, Optional[Edge]]
"""The last edge of the way to each block; ``None``: the function is entered there."""


def paths(
    edges: Iterable[Edge], entries: Collection[int], chosen: Collection[int], random_: random.Random
) -> Iterator[list[Step]]:
    """Yield a shortest path to each of some blocks, and for each edge that is in none of them, a path with it.

    :param entries: addresses at which the function is entered.
    :param random_: chooses among paths of the same length, and the blocks after such an edge.
    """
    if not chosen:
        return
    leaving = _leaving(edges)
    ways = _ways(leaving, entries, random_)
    left, walked = set(chosen), set[Edge]()
    for block in sorted(left & ways.keys()):
        if block in left:
            way = _way(ways, block)
            walked.update(way)
            left.difference_update(edge.block for edge in way)
            yield [*_steps(way), Step(block, None)]
    for edge in sorted(edge for block in ways for edge in leaving[block]):
        if edge in walked:
            continue
        way = [*_way(ways, edge.block), edge]
        walked.update(way)
        for _ in range(_WALK):
            following = leaving[way[-1].following]
            if not following:
                break
            way.append(random_.choice([other for other in following if other not in walked] or following))
            walked.add(way[-1])
        yield [*_steps(way), Step(way[-1].following, None)]


def reached(edges: Iterable[Edge], entries: Collection[int]) -> Collection[int]:
    """Return the blocks that edges lead to from the entries of a function."""
    return _ways(_leaving(edges), entries, random.Random(0)).keys()


def _leaving(edges: Iterable[Edge]) -> defaultdict[int, list[Edge]]:
    found: defaultdict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        found[edge.block].append(edge)
    return found


def _ways(leaving: Mapping[int, list[Edge]], entries: Collection[int], random_: random.Random) -> _Ways:
    ways: dict[int, Edge | None] = dict.fromkeys(entries)
    waiting = deque(entries)
    while waiting:
        edges = [*leaving.get(waiting.popleft(), ())]
        random_.shuffle(edges)
        for edge in edges:
            if edge.following not in ways:
                ways[edge.following] = edge
                waiting.append(edge.following)
    return ways


def _way(ways: _Ways, block: int) -> list[Edge]:
    """Return the edges on the way to a block."""
    found: list[Edge] = []
    while (edge := ways[block]) is not None:
        found.append(edge)
        block = edge.block
    return found[::-1]


def _steps(way: Iterable[Edge]) -> Iterator[Step]:
    return (Step(edge.block, edge.pc) for edge in way)
