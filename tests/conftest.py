"""Prepares a test run, selects its tier, and adds the test matrix and other results to its summary."""

from __future__ import annotations

import compileall
import gc
import getpass
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sframe_unwind import cli
from tests import examples, schemas, tiers, transcripts, turns
from tests.abis import summary
from tests.hanging import WHOLE_TEST
from tests.missing import fixed_addresses_needed, skipping_if_missing

CHECKOUT = Path(__file__).resolve().parents[1]
_BUILDS_A_KERNEL = CHECKOUT / "tests/kernel/test_booted.py"
_KINDS = ("passed", "failed", "error", "skipped")
_PACKAGES = ("sframe_unwind", "gdb_plugin", "lldb_plugin")

for number in (signal.SIGINT, signal.SIGQUIT):
    # A shell without job control ignores both signals in its background processes, and programs inherit that.  They do
    # not inherit a handler: they get the default action, and the tests continue.
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda *_: None)

examples.choose()

# Workers inherit this.  The plugin for time limits reads it before the configuration file.
os.environ.setdefault("PYTEST_TIMEOUT", f"{WHOLE_TEST:.0f}")

try:
    getpass.getuser()
except (ImportError, KeyError, OSError):
    # All users without an entry in passwd are "unknown" to pytest, and its folder for that name is the first one's.
    _own = Path(tempfile.gettempdir(), f"pytest-of-{os.getuid()}")
    _own.mkdir(mode=0o700, exist_ok=True)
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_own))

if "PYTEST_XDIST_WORKER" not in os.environ:
    # Some thousand processes import the packages. Compiling them takes a third to two thirds of the processor time of
    # a command or of a GDB, and LLDB never keeps what it has compiled. Workers inherit the environment.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    for _package in _PACKAGES:
        compileall.compile_dir(CHECKOUT / _package, quiet=2)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that selects a tier."""
    parser.addoption(
        "--tier",
        choices=(*tiers.TIERS, tiers.REST),
        default=tiers.ALL,
        help="which tests to run (tests/tiers.py); rest: those of `all` that `test` does not run; default: all",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no files without a test of the tier: that takes longer than all tests of `make quick`."""
    if not collection_path.name.startswith("test_") or not collection_path.is_relative_to(CHECKOUT):
        return None
    path = collection_path.relative_to(CHECKOUT).as_posix()
    return None if tiers.may_have(path, config.getoption("tier")) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Import the files in another order in each worker of a run of all tests."""
    config = session.config
    worker = getattr(config, "workerinput", None)
    if worker and [Path(argument).resolve() for argument in config.args] == [CHECKOUT / "tests"]:
        paths = (CHECKOUT / "tests").rglob("test_*.py")
        chosen = [path for path in paths if pytest_ignore_collect(path, config) is None]
        turns.import_in_turn(CHECKOUT, chosen, int(worker["workerid"].removeprefix("gw")), worker["workercount"])


# Before the selection by -k and -m: the tier of a test depends on all tests of its function.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the tests of the tier, and run those that build a kernel first: that takes minutes, beside the others."""
    placed = zip(items, tiers.place([_case(item) for item in items]))
    chosen = {item: tiers.selected(tier, config.getoption("tier")) for item, tier in placed}
    config.hook.pytest_deselected(items=[item for item in items if not chosen[item]])
    items[:] = [item for item in items if chosen[item]]
    items.sort(key=lambda item: item.path != _BUILDS_A_KERNEL)


def pytest_collection_finish() -> None:
    """Have no collection of garbage look at what stays until the end: a million objects of tests and modules."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the JSON of all commands that tests run in this process against its schema."""
    monkeypatch.setattr(cli, "_run", schemas.checked(cli._run))


@pytest.fixture
def fixed_addresses() -> None:
    """End a test that compares addresses of two sessions if they differ in each, also without the plugin."""
    fixed_addresses_needed()


def _case(item: pytest.Item) -> tiers.Case:
    called = getattr(item, "callspec", None)
    values = called.params.values() if called else ()
    return tiers.Case(item.nodeid.partition("[")[0], tuple(text for value in values for text in _texts(value)))


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of a parameter's value, or of the fields of one with several."""
    for part in value if hasattr(value, "_fields") else (value,):
        yield part if isinstance(part, str) else repr(part)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, Any, Any]:
    """Begin the transcripts of a test; skip it if a tool or package that one of its fixtures uses is not installed."""
    transcripts.begin()
    with skipping_if_missing():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """Skip a test if a tool or package that it uses is not installed."""
    with skipping_if_missing():
        return (yield)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Keep the transcripts of a test that has failed, and name the file in the report."""
    report = (yield).get_result()
    if report.failed and (file := transcripts.keep(item.nodeid)):
        report.sections.append(("the whole transcript of the debuggers", str(file)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of tests by ABI, the counts that the documentation promises, and how many were skipped why."""
    reports = [report for kind in _KINDS for report in terminalreporter.getreports(kind)]
    tests = [report for report in reports if isinstance(report, pytest.TestReport)]  # not of a file that skips all
    properties = [entry for report in tests if report.when == "call" for entry in report.user_properties]
    skipped = [
        (value, report.longrepr[2])
        for report in tests
        if report.skipped and isinstance(report.longrepr, tuple)
        for name, value in report.user_properties
        if name == summary.CELL
    ]
    for line in (*summary.lines(properties, skipped), *_outcomes(reports)):
        terminalreporter.write_line(line)


def _outcomes(reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> Iterator[str]:
    """Yield the number of tests by outcome, and of the skipped ones by reason."""
    counts = Counter(report.outcome for report in reports if getattr(report, "when", "") == "call" or not report.passed)
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in reports
        if report.skipped and isinstance(report.longrepr, tuple)
    )
    yield ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in ("passed", "failed", "skipped"))
    for reason, count in reasons.most_common():
        yield f"  skipped {count:,}: {reason}"
