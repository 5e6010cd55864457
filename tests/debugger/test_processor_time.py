"""The limits of processor time: what a debugger shows does not depend on what else the machine does."""

from __future__ import annotations

import time
from typing import Any, Callable

import pytest

from sframe_unwind.code.decode import lifting
from sframe_unwind.debugger import code_judge
from sframe_unwind.debugger.code_judge import CodeJudge
from sframe_unwind.debugger.processor_time import ProcessorTime
from sframe_unwind.report.compare import ByCode
from tests.debugger.computing import LIMIT, compute

_ANYTHING: Any = None


def _compute_and_fail() -> None:
    compute()
    raise ZeroDivisionError


def _wait() -> None:
    time.sleep(2 * LIMIT)


def test_work_uses_it_up_also_if_it_fails() -> None:
    left = ProcessorTime(LIMIT)
    with left.used():
        _wait()
    assert not left.is_used_up
    with pytest.raises(ZeroDivisionError), left.used():
        _compute_and_fail()
    assert left.is_used_up


@pytest.mark.parametrize(
    ("load", "work", "is_used_up"), [(_wait, _wait, False), (compute, _wait, False), (_wait, compute, True)]
)
def test_rows_are_judged_on_a_busy_machine(
    monkeypatch: pytest.MonkeyPatch, load: Callable[[], None], work: Callable[[], None], is_used_up: bool
) -> None:
    """Neither loading the extra nor other processes use up the time of `sframe compare`."""
    proved = ByCode("proved", "")

    def judged(*_: Any, **__: Any) -> ByCode:
        work()
        return proved

    monkeypatch.setattr(lifting, "check_installed", load)
    monkeypatch.setattr(code_judge, "_judged", judged)
    judge = CodeJudge(LIMIT).rows_of(_ANYTHING)
    assert judge(0) == proved
    assert judge(1) == (None if is_used_up else proved)
