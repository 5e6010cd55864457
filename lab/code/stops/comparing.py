"""Compares the stops of one build with those of the build with CFI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Callable


@dataclass
class Count:
    """The result for some stops."""

    stops: int = 0
    equal: int = 0
    """Number of frames that are those with CFI."""
    wrong: int = 0
    """Number of frames that are other ones, one for each stop: those further out follow from it."""
    missing: int = 0
    """Number of frames that only the build with CFI has."""
    shorter: int = 0
    """Number of stops whose stack ends too early."""
    longer: int = 0
    """Number of stops at which the stack with CFI ends, and this one goes on."""
    moves: int = 0
    """Number of commands that moved on."""
    moved_elsewhere: int = 0
    """Number of these that ended elsewhere than with CFI."""
    unnoticed: int = 0
    """Number of these that LLDB ended in a callee, which it took for the caller or an outer function: by its own
    unwinder, the CFA is not below the caller's."""
    other_ways: int = 0
    """Number of runs that did not stop at the same places to their end."""

    def add(self, other: Count) -> None:
        """Add another result."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def __str__(self) -> str:
        frames = (
            f"{self.equal:5} frames equal, {self.wrong:3} wrong, {self.missing:4} missing at {self.shorter:3} stops"
        )
        moves = f"{self.moves:4} moves, {self.moved_elsewhere:3} elsewhere"
        if self.unnoticed:
            moves += f" ({self.unnoticed} in a callee that LLDB took for the caller)"
        cut = f"; {self.other_ways} cut off" if self.other_ways else ""
        return f"{self.stops:4} stops: {frames}, longer at {self.longer:2}; {moves}{cut}"


def compared(
    wanted: Sequence[dict[str, Any]], found: Sequence[dict[str, Any]], title: str, report: Callable[[str], None]
) -> Count:
    """Compare stops, which have to be at the same places in the same order.

    :param wanted: those of the build with CFI.
    :param report: called with a line for each difference.
    """
    count = Count()
    for number, (right, other) in enumerate(zip(wanted, found)):
        frames, shown = right["frames"], other["frames"]
        where = f"{title}, stop {number} at {frames[0][0]:#x}"
        if (shown[:1], other.get("sp")) != (frames[:1], right.get("sp")):
            report(f"{where}: the program has gone another way, to {shown[0][0]:#x}")
            count.other_ways += 1
            return count
        count.stops += 1
        same = next((level for level, pair in enumerate(zip(frames, shown)) if pair[0] != pair[1]), None)
        level = min(len(frames), len(shown)) if same is None else same
        count.equal += level
        if level < len(shown):
            count.wrong += level < len(frames)
            count.longer += level == len(frames)
            report(f"{where}: frame {level} is {_hex(shown[level])}, with CFI {_hex(*frames[level : level + 1])}")
        elif level < len(frames):
            count.missing += len(frames) - level
            count.shorter += 1
            report(f"{where}: no frame {level}, with CFI {_hex(frames[level])}")
        if right.get("move"):
            count.moves += 1
            if right["after"] != other["after"]:
                count.moved_elsewhere += 1
                count.unnoticed += _is_unnoticed(right, other)
                report(f"{where}: {right['move']} ends at {_hex(*other['after'])}, with CFI {_hex(*right['after'])}")
                count.other_ways += number + 1 < len(wanted)
                return count
    if len(found) != len(wanted):
        report(f"{title}: {len(found)} stops, with CFI {len(wanted)}")
        count.other_ways += 1
    return count


def _is_unnoticed(right: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether a step in LLDB has entered a function, but the innermost frame seems to be the caller or outer."""
    cfa, after = other.get("cfa"), other.get("cfa after")
    if cfa is None or after is None or right["cfa after"] is None:
        return False
    return bool(after >= cfa and right["cfa after"] < right["cfa"])


def _hex(*frame: Sequence[int]) -> str:
    return " ".join(f"{value:#x}" for value in frame[0]) if frame else "none"
