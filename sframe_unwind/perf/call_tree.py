"""The stacks of all methods as one tree, for flame graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_SMALLEST = 5000
"""A node is left out if fewer than one in this number of samples have it: it is narrower than a pixel."""

Stack = tuple[str, ...]
"""Names from the outermost frame inward."""


class CallTree:
    """The stacks of several methods: a node for each distinct beginning of a stack.

    :param counts: for each method, the number of samples of each stack.
    """

    def __init__(self, counts: Sequence[Mapping[Stack, int]]) -> None:
        self._counts = counts
        self._numbers: dict[tuple[int, str], int] = {}
        self._parents: list[int] = []
        self._names: list[str] = []
        self._samples: list[list[int]] = []
        self._add(-1, "")
        for method, stacks in enumerate(counts):
            for stack, count in stacks.items():
                self._count(method, stack, count)

    def _add(self, parent: int, name: str) -> int:
        self._parents.append(parent)
        self._names.append(name)
        self._samples.append([0] * len(self._counts))
        return len(self._parents) - 1

    def _count(self, method: int, stack: Stack, count: int) -> None:
        node = 0
        self._samples[node][method] += count
        for name in stack:
            child = self._numbers.get((node, name))
            if child is None:
                child = self._numbers[node, name] = self._add(node, name)
            node = child
            self._samples[node][method] += count

    def to_json(self) -> dict[str, Any]:
        """Return the nodes as parallel lists: a node's parent comes before it, and node 0 is the root.

        A tree of nested lists would be as deep as the stacks, and parsers limit the depth.
        """
        least = max(self._samples[0]) / _SMALLEST
        kept: dict[int, int] = {}
        texts: dict[str, int] = {}
        parents, names, samples = [], [], []
        for node, (parent, name, counts) in enumerate(zip(self._parents, self._names, self._samples)):
            if max(counts) < least:  # no node below it has more
                continue
            kept[node] = len(kept)
            parents.append(kept.get(parent, -1))
            names.append(texts.setdefault(name, len(texts)))
            samples.append(counts)
        return {"texts": list(texts), "parents": parents, "names": names, "samples": samples}
