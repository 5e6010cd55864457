"""A test that cannot run reports what is missing, and is a failure where the report would not be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sframe_unwind.machine import gdb
from sframe_unwind.machine.finding import Finding
from tests import missing
from tools.binutils import ToolchainUnavailable

pytest_plugins = ["pytester"]
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


@pytest.mark.parametrize("in_ci", [False, True])
def test_what_the_machine_cannot_do_is_skipped_everywhere(monkeypatch: pytest.MonkeyPatch, in_ci: bool) -> None:
    refused = Finding("GDB", gdb.CALLS, False, "Bad address", "install another")
    starts = Finding("GDB", gdb.STARTS, True, "yes")
    monkeypatch.setattr(missing, "IN_CI", in_ci)
    monkeypatch.setattr(gdb, "probe", lambda _: (starts, refused))
    with pytest.raises(pytest.skip.Exception, match="GDB: calls functions: Bad address; install another"):
        missing.gdb_needed("gdb", gdb.CALLS)
    missing.gdb_needed("gdb", gdb.WRITES)  # another ability
    monkeypatch.setattr(missing, "_records", lambda: refused)
    with pytest.raises(pytest.skip.Exception, match="Bad address"):
        missing.recordings_needed()


def test_what_is_not_known_about_the_machine_skips_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "_cores", lambda: Finding("Linux", "core files", None, "not known"))
    missing.core_files_needed()
