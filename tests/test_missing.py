"""A test that cannot run reports what is missing, and is a failure where the report would not be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import missing
from tools.binutils import ToolchainUnavailable

TESTS = Path(__file__).resolve().parent


def test_nothing_is_skipped_elsewhere() -> None:
    pattern = re.compile(r"\b(pytest\.(skip|importorskip|xfail)|mark\.(skip|skipif|xfail))\b")
    places = [path for path in TESTS.rglob("*.py") if path != Path(__file__).resolve()]
    assert [path.name for path in places if pattern.search(path.read_text(encoding="utf-8"))] == ["missing.py"]


@pytest.mark.parametrize(("in_ci", "outcome"), [(False, pytest.skip.Exception), (True, pytest.fail.Exception)])
def test_what_is_missing(monkeypatch: pytest.MonkeyPatch, in_ci: bool, outcome: type[BaseException]) -> None:
    monkeypatch.setattr(missing, "IN_CI", in_ci)
    with pytest.raises(outcome, match="no such debugger"):
        missing.absent("no such debugger")
    with pytest.raises(outcome, match="no such assembler"), missing.toolchain_needed():
        raise ToolchainUnavailable("no such assembler")
    with pytest.raises(pytest.skip.Exception, match="another kernel"):
        missing.not_on_this_system("another kernel")
