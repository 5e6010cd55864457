"""Recordings of single steps on each machine: the stacks equal those of GDB at the same instruction."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from sframe_unwind.perf.judging import Judged, Verdict
from sframe_unwind.perf.plain_rules import PlainRules
from tests.hanging import HANG
from tests.perf.emulated import Steps, stepped
from tests.perf.unwinding import unwound

DEEP = Steps("recursion", "sample_stop", ("30",), every=4, most=60)
"""Steps from below 40 frames up to those of the C library, in the machine's own library of Debian."""
WALK = Steps("free_walk", "free_main", every=3)
"""Steps without a C library.  One frame is larger than any copy of the stack that perf can make."""
SIZES = {"recursion": (40, 50), "free_walk": (15, 40)}
"""Minimum numbers of frames of the deepest stack, and of samples."""


def registers_of_perf(path: Path) -> list[list[int]]:
    """Return the user registers of each sample, in the order of the kernel's numbers, as perf reads them."""
    command = ["perf", "script", "-D", "-i", str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANG).stdout
    return [
        [int(value, 16) for value in re.findall(r"^\.{4} .* 0x([0-9a-f]{16})$", part.partition("... ustack")[0], re.M)]
        for part in printed.split("... user regs: mask ")[1:]
    ]


def check(judged: Judged, expected: tuple[int, ...], plt: range) -> None:
    """Check a stack against GDB's."""
    pcs = judged.stack.pcs
    if judged.verdict is Verdict.COMPLETE:
        assert pcs == expected
    else:
        assert pcs == expected[: len(pcs)]
        # The linker writes no CFI for the PLT of AArch64, and no SFrame for the PLT of s390x.
        assert judged.verdict is Verdict.CUT or pcs[-1] in plt, judged


@pytest.mark.parametrize(
    ("abi", "steps"),
    [("aarch64", DEEP), ("s390x", DEEP), ("aarch64_be", WALK), ("s390x", WALK)],
    ids=["aarch64-deep", "s390x-deep", "aarch64_be-walk", "s390x-walk"],
)
def test_stacks_are_those_of_the_debugger(
    tmp_path: Path, abi: str, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stepped(steps, abi)
    path = tmp_path / "perf.data"
    path.write_bytes(made.recording)
    found = unwound(path, convert=True)
    frames, samples = SIZES[steps.sample]
    assert max(map(len, made.stacks)) >= frames
    assert len(found) == len(made.stacks) >= samples
    complete = 0
    for one, expected in zip(found, made.stacks):
        for method in ("dwarf", "sframe", "sframe+dwarf"):
            check(one.by_method[method], expected, made.plt)
            complete += one.by_method[method].verdict is Verdict.COMPLETE
    assert complete > 0.75 * 3 * len(found)
    assert [list(one.sample.registers.values()) for one in found] == registers_of_perf(path)
    monkeypatch.setattr(PlainRules, "_find", lambda _rules, _lookup: None)
    assert [one.by_method for one in unwound(path, convert=True)] == [one.by_method for one in found]
