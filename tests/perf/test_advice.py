"""The sentences of the command agree with their numbers: one, two and many."""

from __future__ import annotations

import pytest

from sframe_unwind.arch import amd64
from sframe_unwind.perf.advice import advice
from sframe_unwind.perf.ending import Ending
from sframe_unwind.perf.judging import Judged, Unwound, Verdict
from sframe_unwind.perf.names import Name, Names
from sframe_unwind.perf.sample import Sample
from sframe_unwind.perf.spaces import Space
from sframe_unwind.perf.stack import Stack
from sframe_unwind.perf.summary import Summary
from sframe_unwind.perf.text import sentence
from sframe_unwind.unwind.modules import NO_SECTION

SAMPLE = Sample(pid=1, tid=1, time=0, ip=0, callchain=(), abi=0, registers={}, stack=bytes(4096), stack_is_cut=True)


class Given(Names):
    """Names for addresses."""

    def find(self, space: Space, lookup: int, pid: int = 0) -> Name:  # noqa: ARG002
        return Name(f"f{lookup}", f"/lib/{lookup}.so", "")


def summary(*samples: tuple[Verdict, int, str]) -> Summary:
    """Return a summary with one sample for each verdict, address of the stack's end, and reason, by SFrame."""
    made = Summary(("sframe",), Given())
    for verdict, at, reason in samples:
        stack = Stack((at,), (True,), Ending.FAILED, reason)
        judged = Judged(stack, verdict, 0 if reason else None, reason, 1)
        made.add(Unwound(SAMPLE, Space(amd64.ARCH, []), {"sframe": judged}, 1), "thread")
    return made


def failed(*places: int) -> list[tuple[Verdict, int, str]]:
    return [(Verdict.FAILED, at, NO_SECTION) for at in places]


CUT = (Verdict.CUT, 0, "")


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (summary(*failed(1)), "1 stack ends by SFrame at a file without it: /lib/1.so (1); build it with"),
        (
            summary(*failed(1, 1, 2)),
            "3 stacks end by SFrame at a file without it: /lib/1.so (2), /lib/2.so (1); build them with",
        ),
        (summary(*failed(1, 2, 3, 4)), "(1), /lib/3.so (1) and 1 more; build them with"),
        (summary(CUT), "1 stack is cut at the end of the copy, 4,096 bytes from SP: record more"),
        (summary(CUT, CUT), "2 stacks are cut at the end of the copy"),
    ],
)
def test_advice(made: Summary, expected: str) -> None:
    (line,) = advice(made, convert=False)
    assert expected in line


def test_sentence() -> None:
    assert sentence(summary(*failed(1))) == (
        "SFrame gives complete stacks for 0.0% of 1 sample; 100.0% of the failed and wrong ones end in 1.so"
        " (1 function: the module has no SFrame section)"
    )
    assert sentence(summary((Verdict.COMPLETE, 1, ""))) == "SFrame gives complete stacks for 100.0% of 1 sample"
    assert "of 1,000 samples; 50.0% of the failed" in sentence(summary(*failed(*[1] * 500, *range(2, 502))))
