"""The proofs during an interpretation equal the results of executing every instruction again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.code.witness.encodings import small_library
from sframe_unwind import elf
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.interpret.run import Run
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.interpret.walk import walk
from sframe_unwind.code.judge import function_check
from sframe_unwind.code.judge.findings import CodeVerdict
from sframe_unwind.code.judge.proofs import Proofs
from sframe_unwind.verify.code_check import check_elf


class Walked:
    """Counts the instructions that are executed a second time."""

    count = 0

    def __call__(self, interpreter: Interpreter, run: Run, start: int) -> Iterator[tuple[int, State]]:
        """Walk a block."""
        for step in walk(interpreter, run, start):
            self.count += 1
            yield step


def checked(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[CodeVerdict, int]:
    """Return the result for a file with the verdict on each instruction, and the number of repeated executions."""
    walked = Walked()
    monkeypatch.setattr(function_check, "walk", walked)
    with elf.opened(path) as binary:
        every = frozenset(pc for start, end in binary.cfi.ranges() for pc in range(start, end))
        return check_elf(binary, None, wanted=every), walked.count


@pytest.mark.parametrize("name", ["amd64", "aarch64", "s390x"])
def test_the_verdicts_are_those_of_a_second_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small_library(name)
    found, again = checked(path, monkeypatch)
    monkeypatch.setattr(Proofs, "holds", lambda *_: False)
    expected, every = checked(path, monkeypatch)
    assert found == expected
    assert again < every // 10
