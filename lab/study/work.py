"""What benchmarks of Python interpreters do: objects and calls, floats, permutations, generators, regular expressions,
parsing, sorting, copying."""

from __future__ import annotations

import copy
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path


class Node:
    """A node of a binary tree."""

    def __init__(self, depth: int) -> None:
        self.left = Node(depth - 1) if depth else None
        self.right = Node(depth - 1) if depth else None

    def check(self) -> int:
        return 1 + (self.left.check() + self.right.check() if self.left and self.right else 0)


def orbit(steps: int) -> None:
    bodies = [[x, y, 0.1, -0.1, 1.0 + x] for x, y in ((0.0, 0.0), (1.0, 2.0), (-3.0, 0.5))]
    for _ in range(steps):
        for one in bodies:
            for other in bodies:
                dx, dy = other[0] - one[0], other[1] - one[1]
                pull = other[4] / (dx * dx + dy * dy + 0.1) ** 1.5 * 0.001
                one[2] += dx * pull
                one[3] += dy * pull
            one[0] += one[2] * 0.001
            one[1] += one[3] * 0.001


def permutations(items: list[int]) -> Iterator[list[int]]:
    if len(items) < 2:
        yield items
        return
    for number, item in enumerate(items):
        for rest in permutations(items[:number] + items[number + 1 :]):
            yield [item, *rest]


SOURCE = Path(__file__).read_text(encoding="utf-8")
for _ in range(40):
    Node(13).check()
    orbit(5000)
    assert len(list(permutations(list(range(7))))) == 5040
    words = re.findall(r"\b([a-z_]+)\s*\(", SOURCE * 40)
    sorted(words * 20, key=lambda word: (len(word), word))
    data = [{"name": word, "values": [number, str(number)]} for number, word in enumerate(words)]
    assert copy.deepcopy(json.loads(json.dumps(data, indent=1))) == data
    list(tokenize.generate_tokens(io.StringIO(SOURCE * 3).readline))
    for _ in range(5):
        compile(SOURCE, "source", "exec")
