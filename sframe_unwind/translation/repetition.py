"""Code whose rules repeat, as those of the entries of a PLT do: it takes one mask FDE, however long it is."""

from __future__ import annotations

from typing import NamedTuple

from sframe_unwind.translation.changes import Rules

MAX_PERIOD = 255
"""Bytes: the repetition size has one byte (V2 errata 1, 2.3)."""
_MAX_HEAD = 8
"""Rows that may stand before those that repeat: the first entry of a PLT has two or three."""
_MAX_KINDS = 255
"""Maximum number of different rules; a PLT has three."""


class Repetition(NamedTuple):
    """From which offset on rules repeat, and after how many bytes."""

    offset: int
    period: int


def repetition(rules: Rules, size: int) -> Repetition | None:
    """Return how the rules of a function repeat up to its end; ``None``: they do not.

    :param size: of the function, in bytes.
    """
    offsets, said = rules
    kinds = {rule: number for number, rule in enumerate(dict.fromkeys(said))}
    if not offsets or offsets[0] or len(kinds) > _MAX_KINDS:
        return None
    # One byte for the rule of each address, so that a period is a comparison of memory.
    ends = [*offsets[1:], size]
    bytewise = b"".join(bytes([kinds[rule]]) * (end - at) for rule, at, end in zip(said, offsets, ends))
    for offset in offsets[:_MAX_HEAD]:
        part = bytewise[offset:]
        for period in range(1, min(MAX_PERIOD, len(part) // 2) + 1):
            if part.startswith(part[period:]):
                # Where one rule holds for all of the rest, there is nothing that repeats.
                return None if period == 1 else Repetition(offset, period)
    return None
