"""Finds code whose rules repeat, such as the entries of a PLT: one mask FDE can describe such code of any length."""

from __future__ import annotations

from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.translation.changes import Rules

MAX_PERIOD = 255
"""Maximum period in bytes: the repetition size has one byte (V2 errata 1, 2.3)."""
_MAX_HEAD = 8
"""Maximum number of rows before those that repeat: the first entry of a PLT has two or three."""
_MAX_KINDS = 255
"""Maximum number of different rules; a PLT has three."""


class Repetition(NamedTuple):
    """The offset from which on rules repeat, and the number of bytes after which they do."""

    offset: int
    period: int


def repetition(rules: Rules, size: int) -> Repetition | None:
    """Return the repetition of a function's rules, up to its end; ``None``: they do not repeat.

    :param size: size of the function, in bytes.
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
                # A single rule for all of the rest does not repeat.
                return None if period == 1 else Repetition(offset, period)
    return None
