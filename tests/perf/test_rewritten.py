"""Samples of a program that BOLT has rewritten, where SFrame is that of the code before."""

from __future__ import annotations

from pathlib import Path

from sframe_unwind.perf.judging import Verdict
from tests.perf import programs
from tests.perf.unwinding import unwound
from tests.rewriting.bolt import bolted, compiled


def test_sframe_before_dwarf_has_the_stacks_of_dwarf(tmp_path: Path) -> None:
    program = bolted(compiled(tmp_path, 3, "-DBY_HAND", "-DSPINS=50000000"))
    samples = unwound(programs.record_command([str(program)], tmp_path))
    complete = [one.by_method for one in samples if one.by_method["dwarf"].verdict is Verdict.COMPLETE]
    assert len(complete) > 20
    for found in complete:
        assert found["sframe+dwarf"].stack.pcs == found["dwarf"].stack.pcs
    assert any(found["sframe"].verdict is Verdict.WRONG for found in complete)
