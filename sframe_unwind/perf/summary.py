"""Counts the verdicts of a recording, and the causes of incomplete stacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.perf.by_code import Right
from sframe_unwind.perf.judging import Unwound, Verdict, frames
from sframe_unwind.perf.names import Name, Names


class Blocker(NamedTuple):
    """A function whose caller a method does not find."""

    method: str
    name: Name
    reason: str
    right: Right | None
    """The stack that is right according to the code; ``None``: the code was not checked."""
    samples: int

    @property
    def explanation(self) -> str:
        """The reason, and the stack that is right according to the code."""
        return self.reason + (f"; {_RIGHT[self.right]}" if self.right is not None else "")


_RIGHT = {
    Right.DWARF: "by the code, SFrame is wrong",
    Right.SFRAME: "by the code, the CFI is wrong",
    Right.NEITHER: "by the code, both are wrong",
    Right.UNKNOWN: "the code does not decide",
}


class ThreadCount(NamedTuple):
    """The samples of one thread."""

    pid: int
    tid: int
    name: str
    samples: int
    complete: tuple[int, ...]
    """Number of complete stacks by each method."""


class Summary:
    """The counts.

    :param methods: the methods, in the order of the table.
    """

    def __init__(self, methods: Sequence[str], names: Names) -> None:
        self.methods = tuple(methods)
        self.samples = 0
        """Number of all samples, including those that cannot be unwound."""
        self.user_samples = 0
        self.frames_by_cfi = 0
        """Number of frames in all stacks by DWARF CFI."""
        self.largest_cut = 0
        """Size of the largest copy after whose end a stack continues, in bytes; 0: there is none."""
        self._names = names
        self._verdicts: Counter[tuple[str, Verdict]] = Counter()
        self._frames: Counter[str] = Counter()
        self._blockers: Counter[tuple[str, Name, str, Right | None]] = Counter()
        self._threads: Counter[tuple[int, int, str]] = Counter()
        self._complete: Counter[tuple[tuple[int, int, str], str]] = Counter()

    def add(self, unwound: Unwound, thread_name: str) -> None:
        """Count a sample."""
        self.user_samples += 1
        self.frames_by_cfi += unwound.frames_by_cfi
        thread = unwound.sample.pid, unwound.sample.tid, thread_name
        self._threads[thread] += 1
        for method, judged in unwound.by_method.items():
            self._verdicts[method, judged.verdict] += 1
            self._frames[method] += judged.shared
            if judged.verdict is Verdict.CUT:
                self.largest_cut = max(self.largest_cut, len(unwound.sample.stack))
            self._complete[thread, method] += judged.verdict is Verdict.COMPLETE
            if judged.blocked_at is not None:
                lookup = list(frames(judged.stack))[judged.blocked_at]
                name = self._names.find(unwound.space, lookup, unwound.sample.pid)
                self._blockers[method, name, judged.reason, judged.right] += 1

    def count(self, method: str, verdict: Verdict) -> int:
        """Return the number of samples with a verdict."""
        return self._verdicts[method, verdict]

    def frames(self, method: str) -> int:
        """Return the number of a method's frames that are equal to those by DWARF CFI, from the innermost one on."""
        return self._frames[method]

    def blockers(self, method: str | None = None) -> list[Blocker]:
        """Return the blockers of a method, or of all methods; most samples first."""
        found = [Blocker(*key, count) for key, count in self._blockers.items() if method in (None, key[0])]
        return sorted(
            found, key=lambda one: (self.methods.index(one.method), -one.samples, one.name, one.reason, str(one.right))
        )

    def threads(self) -> list[ThreadCount]:
        """Return the threads; most samples first."""
        return [
            ThreadCount(*thread, count, tuple(self._complete[thread, method] for method in self.methods))
            for thread, count in self._threads.most_common()
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the counts as ``perf --json`` prints them."""
        return {
            "samples": self.samples,
            "user_samples": self.user_samples,
            "methods": {
                method: {verdict.value: self.count(method, verdict) for verdict in Verdict} for method in self.methods
            },
            "frames": {method: self.frames(method) for method in self.methods},
            "frames_by_cfi": self.frames_by_cfi,
            "blockers": [
                {
                    "method": one.method,
                    "module": one.name.module,
                    "build_id": one.name.build_id,
                    "function": one.name.function,
                    "reason": one.reason,
                    **({"right": one.right.value} if one.right is not None else {}),
                    "samples": one.samples,
                }
                for one in self.blockers()
            ],
        }
