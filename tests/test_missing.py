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


MISSING = {
    "no-such-command is not installed": "subprocess.run(['no-such-command'], check=False)",
    "no such assembler": "raise ToolchainUnavailable('no such assembler')",
    "this needs the package libarchive-c": "raise MissingExtraError('libarchive-c', 'survey')",
}
PRESENT = ("open('no-such-file')", "open('/no/such-command')", "subprocess.run(['true'], cwd='/no')", "assert False")
_FILE = """
import subprocess, pytest
from sframe_unwind.errors import MissingExtraError
from tools.binutils import ToolchainUnavailable
{fixture}
def work(): {work}
def test_first(): {test}
def test_second(): {test}
"""


@pytest.mark.parametrize("in_fixture", [False, True])
def test_what_a_test_or_its_fixture_lacks_skips_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, in_fixture: bool
) -> None:
    """The error of a missing tool ends a test as a question for it would; with ``CI`` set, it stays an error."""
    for number, work in enumerate((*MISSING.values(), *PRESENT)):
        fixture, test = ("@pytest.fixture(autouse=True, scope='module')", "pass") if in_fixture else ("", "work()")
        pytester.makepyfile(**{f"test_{number}": _FILE.format(fixture=fixture, work=work, test=test)})
    pytester.makeconftest("from tests.conftest import pytest_runtest_call, pytest_runtest_setup")
    pytester.syspathinsert(TESTS.parent)
    for in_ci, skipped in ((False, len(MISSING)), (True, 0)):
        monkeypatch.setattr(missing, "IN_CI", in_ci)
        done = pytester.inline_run("-p", "no:cacheprovider")
        _, skips, failures = done.listoutcomes()
        assert len(skips) == 2 * skipped
        assert len(failures) == 2 * (len(MISSING) + len(PRESENT) - skipped)
        for reason, skip in zip(MISSING, skips[::2]):
            assert reason in str(skip.longrepr)


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
