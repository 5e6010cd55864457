"""Samples of a program that BOLT has rewritten, where SFrame is that of the code before."""

from __future__ import annotations

from pathlib import Path

from sframe_unwind.perf.judging import Verdict
from tests.perf import programs
from tests.perf.unwinding import unwound
from tests.rewriting.bolt import bolted, compiled


def test_sframe_before_dwarf_has_the_stacks_of_dwarf(tmp_path: Path) -> None:
    program = bolted(compiled(tmp_path, 3, "-DBY_HAND", "-DSPINS=20000000"))
    samples = unwound(programs.record_command([str(program)], tmp_path))
    complete = [one for one in samples if one.by_method["dwarf"].verdict is Verdict.COMPLETE]
    wrong = 0
    for one in complete:
        by_dwarf = one.by_method["dwarf"].stack.pcs
        assert one.by_method["sframe+dwarf"].stack.pcs == by_dwarf
        described = sum(Path(one.space.place(pc)[0]) == program for pc in by_dwarf)
        wrong += one.by_method["sframe"].stack.pcs[:described] != by_dwarf[:described]
    assert wrong  # SFrame alone loses or invents callers within the program
