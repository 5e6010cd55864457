"""The time limit for proving registers by the machine code."""

from __future__ import annotations

import time
from typing import Any

import pytest

from sframe_unwind.code.decode import lifting
from sframe_unwind.debugger import code_registers
from sframe_unwind.debugger.code_registers import RegisterProver
from tests.debugger.computing import LIMIT, compute

_ANYTHING: Any = None


def _prover(monkeypatch: pytest.MonkeyPatch, load: Any, prove: Any) -> RegisterProver:
    monkeypatch.setattr(code_registers, "_SECONDS", LIMIT)
    monkeypatch.setattr(lifting, "check_installed", load)
    monkeypatch.setattr(code_registers, "proved_registers", lambda *_: prove())
    prover = RegisterProver()
    prover.others(_ANYTHING, _ANYTHING, 0)
    return prover


def test_functions_use_up_the_time_of_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    prover = _prover(monkeypatch, load=lambda: None, prove=compute)
    assert prover.is_exhausted
    prover.renew()
    assert not prover.is_exhausted


@pytest.mark.parametrize("slow", ["load", "prove"])
def test_neither_loading_nor_other_processes_use_it_up(slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {"load": compute, "prove": lambda: time.sleep(2 * LIMIT)}
    prover = _prover(monkeypatch, **{"load": lambda: None, "prove": lambda: None, slow: steps[slow]})
    assert not prover.is_exhausted
