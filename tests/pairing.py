"""Pairing of sequences that must be equally long.  `zip(strict=True)` does it from Python 3.10 on."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


def paired(*sequences: Collection[Any]) -> list[tuple[Any, ...]]:
    """Return what `zip` yields; AssertionError where a sequence is shorter than another."""
    lengths = [len(sequence) for sequence in sequences]
    assert len(set(lengths)) == 1, f"of different lengths: {lengths}"
    return list(zip(*sequences))
