"""Writes stacks for flame graphs: folded lines, speedscope's file, and the tree of the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sframe_unwind.perf.call_tree import CallTree
from sframe_unwind.perf.judging import Unwound, frames
from sframe_unwind.perf.names import Names

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


class Stacks:
    """Equal stacks with their counts, by method.

    :param methods: the methods, in the order of the output.
    """

    def __init__(self, methods: Sequence[str], names: Names) -> None:
        self._names = names
        self._counts: dict[str, Counter[tuple[str, ...]]] = {method: Counter() for method in methods}

    def add(self, unwound: Unwound, thread_name: str) -> None:
        """Count the stacks of a sample."""
        known: dict[tuple[object, ...], tuple[str, ...]] = {}  # most methods have the same stack
        for method, judged in unwound.by_method.items():
            walked = judged.stack.pcs, judged.stack.interrupted
            if walked not in known:
                names = [
                    self._names.find(unwound.space, lookup, unwound.sample.pid).shown for lookup in frames(judged.stack)
                ]
                known[walked] = (thread_name or str(unwound.sample.tid), *reversed(names))
            self._counts[method][known[walked]] += 1

    def folded(self) -> Iterator[str]:
        """Yield a line for each stack, as ``flamegraph.pl`` reads it; with several methods, each is a root."""
        several = len(self._counts) > 1
        for method, counts in self._counts.items():
            for stack, count in sorted(counts.items()):
                parts = (method, *stack) if several else stack
                yield ";".join(part.replace(";", ":").replace("\n", " ") for part in parts) + f" {count}"

    def tree(self) -> CallTree:
        """Return the stacks as a tree; its methods are in the order of the output."""
        return CallTree(list(self._counts.values()))

    def speedscope(self, recording: str, version: str) -> dict[str, Any]:
        """Return speedscope's file: one profile for each method.

        :param recording: name of the recording.
        :param version: version of this project.
        """
        numbers: dict[str, int] = {}
        profiles = []
        for method, counts in self._counts.items():
            ordered = sorted(counts.items())
            samples = [[numbers.setdefault(name, len(numbers)) for name in stack] for stack, _ in ordered]
            weights = [count for _, count in ordered]
            profiles.append(
                {
                    "type": "sampled",
                    "name": method,
                    "unit": "none",
                    "startValue": 0,
                    "endValue": sum(weights),
                    "samples": samples,
                    "weights": weights,
                }
            )
        return {
            "$schema": _SCHEMA,
            "shared": {"frames": [{"name": name} for name in numbers]},
            "profiles": profiles,
            "name": recording,
            "exporter": f"sframe-unwind@{version}",
        }
