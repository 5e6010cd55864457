"""Pairs sequences that must be equally long.  `zip(strict=True)` does this since Python 3.10."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


def paired(*sequences: Collection[Any]) -> list[tuple[Any, ...]]:
    """Return the pairs of `zip`; raise AssertionError if a sequence is shorter than another."""
    lengths = [len(sequence) for sequence in sequences]
    assert len(set(lengths)) == 1, f"of different lengths: {lengths}"
    return list(zip(*sequences))
