"""Prepares a test run, and adds the test matrix and other results to its summary."""

from __future__ import annotations

import compileall
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.abis import summary
from tests.missing import fixed_addresses_needed, skipped_by_reason

_BUILDS_A_KERNEL = Path(__file__).parent / "kernel/test_booted.py"
_PACKAGES = ("sframe_unwind", "gdb_plugin", "lldb_plugin")

for number in (signal.SIGINT, signal.SIGQUIT):
    # A shell without job control ignores both signals in its background processes, and programs inherit that.  They do
    # not inherit a handler: they get the default action, and the tests continue.
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda *_: None)

if "PYTEST_XDIST_WORKER" not in os.environ:
    # Some thousand processes import the packages. Compiling them takes a third to two thirds of the processor time of
    # a command or of a GDB, and LLDB never keeps what it has compiled. Workers inherit the environment.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    for _package in _PACKAGES:
        compileall.compile_dir(Path(__file__).resolve().parents[1] / _package, quiet=2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests that build a kernel first: one worker builds it, which takes minutes, beside the others."""
    items.sort(key=lambda item: item.path != _BUILDS_A_KERNEL)


@pytest.fixture
def fixed_addresses() -> None:
    """End a test that compares addresses of two sessions if they differ in each, also without the plugin."""
    fixed_addresses_needed()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of tests by ABI, and the counts that the documentation promises."""
    reports = [report for kind in ("passed", "failed", "skipped") for report in terminalreporter.getreports(kind)]
    properties = [entry for report in reports if report.when == "call" for entry in report.user_properties]
    skipped = [
        (value, report.longrepr[2])
        for report in reports
        if report.skipped and isinstance(report.longrepr, tuple)
        for name, value in report.user_properties
        if name == summary.CELL
    ]
    for line in summary.lines(properties, skipped):
        terminalreporter.write_line(line)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Print the reasons of skipped tests as the last lines."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    for line in skipped_by_reason(reporter.getreports("skipped")) if reporter else ():
        reporter.write_line(line)
