"""Compares the stack that SFrame gives with the debugger's own stack, frame by frame."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, Callable

from sframe_unwind.errors import counted
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report.columns import aligned
from sframe_unwind.report.stack import GENERATED, ShownFrame, Stack
from sframe_unwind.unwind.code_match import CODE
from sframe_unwind.unwind.walk import SFRAME


class ByCode(NamedTuple):
    """The result of checking the row by which SFrame unwound a frame against the machine code."""

    verdict: str
    """``proved``, ``wrong`` or ``unknown``."""
    text: str
    """The error, or the reason why the verdict is unknown; may be empty."""

    def __str__(self) -> str:
        return f"{self.verdict}: {self.text}" if self.text else self.verdict


WRONG = "wrong"
JudgeRow = Callable[[int], "ByCode | None"]
"""``(lookup address)``: returns the result for the row of the address; ``None``: it was not checked."""


class Pair(NamedTuple):
    """The frames of one level in both stacks; ``None``: the stack has ended earlier."""

    native: ShownFrame | None
    sframe: ShownFrame | None
    differences: tuple[str, ...]
    """Which of pc, CFA and FP differ.  Values are compared only if both sides know them."""
    unknown: tuple[str, ...] = ()
    """Which of CFA and FP are not known on both sides, so that they cannot be compared."""
    outermost: bool = False
    """Both stacks end with the frame, and it has no CFA on at least one side: unwinding it needs none."""
    code: ByCode | None = None
    """The result for SFrame's row where both agree; ``None``: it was not checked."""

    @property
    def agrees(self) -> bool | None:
        """Whether both stacks have the frame with the same values; ``None``: not all values are known on both sides."""
        if self.differences:
            return False
        return None if self.unknown or self.outermost else True

    @property
    def mark(self) -> str:
        """The mark of a frame that deserves attention; empty: it does not."""
        if self.differences:
            return ", ".join(self.differences)
        if self.unknown:
            return f"{', '.join(self.unknown)} not known"
        return "the code" if self.code is not None and self.code.verdict == WRONG else ""

    def judged(self, judge: JudgeRow) -> Pair:
        """Return the pair with the result for SFrame's row, if both agree by that row."""
        sframe = self.sframe
        if not self.agrees or sframe is None or sframe.unwinder != SFRAME or sframe.lookup is None:
            return self
        return self._replace(code=judge(sframe.lookup))


class Comparison(NamedTuple):
    """Both stacks of one thread."""

    native: Stack
    sframe: Stack
    pairs: tuple[Pair, ...]

    @property
    def agrees(self) -> bool:
        """Whether both stacks have the same frames, and no value that both know differs."""
        return not any(pair.differences for pair in self.pairs)

    def verdict(self) -> str:
        """Return one line: the number of frames that agree, or the first difference."""
        for level, pair in enumerate(self.pairs):
            if pair.differences:
                return f"first difference at frame {level}: {self._difference(pair)}{self._stopped(level)}"
        wrong = self.wrong_by_code()
        return _agreement([self]) + (f"; {wrong}" if wrong else "")

    def judged(self, judge: JudgeRow) -> Comparison:
        """Return the comparison with the results for the rows by which both stacks agree."""
        return self._replace(pairs=tuple(pair.judged(judge) for pair in self.pairs))

    def wrong_by_code(self) -> str:
        """Return the result for the first frame that is wrong in both stacks; empty: there is none."""
        for level, pair in enumerate(self.pairs):
            if pair.code is not None and pair.code.verdict == WRONG:
                return f"wrong by the code at frame {level}: {pair.code.text}"
        return ""

    def agreeing_by(self, *names: str) -> int:
        """Return the number of frames that agree and that one of some unwinders unwound."""
        return sum(
            pair.agrees is True and pair.sframe is not None and pair.sframe.unwinder in names for pair in self.pairs
        )

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
                "code": pair.code and pair.code.verdict,
            }
            for level, pair in enumerate(self.pairs)
        ]
        return {"id": self.native.thread, "frames": frames, "agrees": self.agrees}


def summary(comparisons: Sequence[Comparison]) -> str:
    """Return one line that sums up the comparisons of several threads."""
    different = [comparison for comparison in comparisons if not comparison.agrees]
    if different:
        first = different[0]
        count = f"{len(different)} of {counted(len(comparisons), 'thread differs', 'threads differ')}"
        return f"{count}; thread {first.native.thread}: {first.verdict()}"
    threads = f"{counted(len(comparisons), 'thread')}: "
    agreement = _agreement(comparisons)
    for comparison in comparisons:
        wrong = comparison.wrong_by_code()
        if wrong:
            return f"{threads}{agreement}; thread {comparison.native.thread}: {wrong}"
    return threads + agreement


def _agreement(comparisons: Sequence[Comparison]) -> str:
    """Return how many frames agree and how many cannot be compared, given that none differs."""
    pairs = [pair for comparison in comparisons for pair in comparison.pairs]
    frames = sum(pair.agrees is True for pair in pairs)
    by_sframe = sum(comparison.agreeing_by(SFRAME, GENERATED) for comparison in comparisons)
    by_code = sum(comparison.agreeing_by(CODE) for comparison in comparisons)
    text = counted(frames, "frame agrees", "frames agree")
    if by_sframe != frames:
        text += f", {by_sframe} of them by SFrame"
    if by_code:
        text += f", {by_code} by the machine code"
    unknown = [pair for pair in pairs if pair.unknown]
    if unknown:
        names = list(dict.fromkeys(name for pair in unknown for name in pair.unknown))
        text += (
            f"; {len(unknown)} not comparable, as {' and '.join(names)} {'is' if len(names) == 1 else 'are'} not known"
        )
    outermost = sum(pair.outermost for pair in pairs)
    if outermost:
        text += f"; {counted(outermost, 'outermost frame has', 'outermost frames have')} no CFA"
    return text


_FIELDS = {"pc": "pc", "CFA": "cfa", "FP": "fp"}


def compare(native: Stack, sframe: Stack) -> Comparison:
    """Compare two stacks of the same thread, level by level."""
    pairs = []
    ends_together = len(native.frames) == len(sframe.frames)
    for level, (left, right) in enumerate(zip_longest(native.frames, sframe.frames)):
        if left is not None and right is not None and _values(left) == _values(right) and None not in _values(left):
            pairs.append(Pair(left, right, ()))
            continue
        differences, unknown = _differences(left, right), _unknown(left, right)
        outermost = ends_together and level + 1 == len(sframe.frames) and "CFA" in unknown
        if outermost:
            unknown = tuple(what for what in unknown if what != "CFA")
        pairs.append(Pair(left, right, differences, unknown, outermost and not differences))
    return Comparison(native, sframe, tuple(pairs))


def _values(frame: ShownFrame) -> tuple[int | None, ...]:
    return frame.pc, frame.cfa, frame.fp


def _differences(native: ShownFrame | None, sframe: ShownFrame | None) -> tuple[str, ...]:
    if native is None or sframe is None:
        return ("frame",)
    return tuple(
        what
        for what in _FIELDS
        if None not in (_field(native, what), _field(sframe, what)) and _field(native, what) != _field(sframe, what)
    )


def _unknown(native: ShownFrame | None, sframe: ShownFrame | None) -> tuple[str, ...]:
    """Return the values that are not known on both sides."""
    if native is None or sframe is None:
        return ()
    return tuple(what for what in _FIELDS if None in (_field(native, what), _field(sframe, what)))


def _field(frame: ShownFrame | None, what: str) -> int | None:
    value: int | None = getattr(frame, _FIELDS[what], None)
    return value


def _hex(value: int | None) -> str:
    return "-" if value is None else f"{value:#x}"


def to_text(comparison: Comparison) -> list[str]:
    """Return the comparison as lines of text.  The last line is the verdict."""
    rows: list[tuple[str, ...]] = [("", "native pc", "native CFA", "SFrame pc", "SFrame CFA", "unwinder", "function")]
    for level, pair in enumerate(comparison.pairs):
        note = " (outermost, no CFA)" if pair.outermost else ""
        mark = f"  <-- {pair.mark}" if pair.mark else ""
        either = pair.sframe or pair.native
        rows.append(
            (
                f"#{level}",
                *(_hex(_field(side, what)) for side in pair[:2] for what in ("pc", "CFA")),
                (pair.sframe.unwinder if pair.sframe else "") or "-",
                ((either.function if either else "") or "??") + note + mark,
            )
        )
    return [*aligned(rows), comparison.verdict()]
