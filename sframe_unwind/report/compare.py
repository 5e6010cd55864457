"""Compares the stack that SFrame gives with the debugger's own stack, frame by frame."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from sframe_unwind.columns import aligned
from sframe_unwind.report.stack import ShownFrame, Stack

SFRAME = "sframe"
"""The unwinder's name in frames that SFrame unwound."""


class Pair(NamedTuple):
    """The frames of one level in both stacks; ``None``: the stack has ended before."""

    native: ShownFrame | None
    sframe: ShownFrame | None
    differences: tuple[str, ...]
    """Which of pc, CFA and FP differ.  Values are compared only if both sides know them."""

    @property
    def agrees(self) -> bool:
        """Whether both stacks have the frame, and no value differs."""
        return not self.differences


class Comparison(NamedTuple):
    """Both stacks of one thread."""

    native: Stack
    sframe: Stack
    pairs: tuple[Pair, ...]

    @property
    def agrees(self) -> bool:
        """Whether all frames agree."""
        return all(pair.agrees for pair in self.pairs)

    def verdict(self) -> str:
        """Return one line: the number of frames that agree, or the first difference."""
        for level, pair in enumerate(self.pairs):
            if not pair.agrees:
                return f"first difference at frame {level}: {self._difference(pair)}{self._stopped(level)}"
        return _agreement(len(self.pairs), self.by_sframe)

    @property
    def by_sframe(self) -> int:
        """The number of frames that SFrame unwound.  In both stacks, the debugger's own unwinder unwound the others."""
        return sum(pair.sframe is not None and pair.sframe.unwinder == SFRAME for pair in self.pairs)

    def _difference(self, pair: Pair) -> str:
        if pair.native is None and pair.sframe is not None:
            return f"only SFrame has it ({pair.sframe.pc:#x} {pair.sframe.function or '??'}); native: {self.native.end}"
        if pair.sframe is None and pair.native is not None:
            return f"only native has it ({pair.native.pc:#x} {pair.native.function or '??'}); SFrame: {self.sframe.end}"
        what = pair.differences[0]
        return f"{what} {_hex(_field(pair.native, what))} native, {_hex(_field(pair.sframe, what))} by SFrame"

    def _stopped(self, level: int) -> str:
        """Return why one stack ends at the level if the other one continues; else an empty string."""
        if len(self.native.frames) == level + 1 < len(self.sframe.frames):
            return f"; native ends there: {self.native.end}"
        if len(self.sframe.frames) == level + 1 < len(self.native.frames):
            return f"; SFrame ends there: {self.sframe.end}"
        return ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of the thread in ``sframe compare --json``."""
        frames = [
            {
                "level": level,
                "pc": pair.native and pair.native.pc,
                "cfa": pair.native and pair.native.cfa,
                "sframe_pc": pair.sframe and pair.sframe.pc,
                "sframe_cfa": pair.sframe and pair.sframe.cfa,
                "unwinder": (pair.sframe and pair.sframe.unwinder) or None,
                "agrees": pair.agrees,
            }
            for level, pair in enumerate(self.pairs)
        ]
        return {"id": self.native.thread, "frames": frames, "agrees": self.agrees}


def summary(comparisons: Sequence[Comparison]) -> str:
    """Return one line that sums up the comparisons of several threads."""
    different = [comparison for comparison in comparisons if not comparison.agrees]
    if different:
        first = different[0]
        count = f"{len(different)} of {len(comparisons)} threads differ"
        return f"{count}; thread {first.native.thread}: {first.verdict()}"
    frames = sum(len(comparison.pairs) for comparison in comparisons)
    threads = f"{len(comparisons)} thread{'' if len(comparisons) == 1 else 's'}: "
    return threads + _agreement(frames, sum(comparison.by_sframe for comparison in comparisons))


def _agreement(frames: int, by_sframe: int) -> str:
    text = f"{frames} frame{'' if frames == 1 else 's'} agree{'s' if frames == 1 else ''}"
    return text if by_sframe == frames else f"{text}, {by_sframe} of them by SFrame"


_FIELDS = {"pc": "pc", "CFA": "cfa", "FP": "fp"}


def compare(native: Stack, sframe: Stack) -> Comparison:
    """Compare two stacks of the same thread, level by level."""
    pairs = [
        Pair(left, right, _differences(left, right)) for left, right in zip_longest(native.frames, sframe.frames)
    ]
    return Comparison(native, sframe, tuple(pairs))


def _differences(native: ShownFrame | None, sframe: ShownFrame | None) -> tuple[str, ...]:
    if native is None or sframe is None:
        return ("frame",)
    return tuple(
        what
        for what in _FIELDS
        if None not in (_field(native, what), _field(sframe, what)) and _field(native, what) != _field(sframe, what)
    )


def _field(frame: ShownFrame | None, what: str) -> int | None:
    value: int | None = getattr(frame, _FIELDS[what], None)
    return value


def _hex(value: int | None) -> str:
    return "-" if value is None else f"{value:#x}"


def to_text(comparison: Comparison) -> list[str]:
    """Return the comparison as lines of text.  The last line is the verdict."""
    rows: list[tuple[str, ...]] = [("", "native pc", "native CFA", "SFrame pc", "SFrame CFA", "unwinder", "function")]
    for level, pair in enumerate(comparison.pairs):
        mark = "" if pair.agrees else "  <-- " + ", ".join(pair.differences)
        either = pair.sframe or pair.native
        rows.append(
            (
                f"#{level}",
                *(_hex(_field(side, what)) for side in pair[:2] for what in ("pc", "CFA")),
                (pair.sframe.unwinder if pair.sframe else "") or "-",
                ((either.function if either else "") or "??") + mark,
            )
        )
    return [*aligned(rows), comparison.verdict()]
