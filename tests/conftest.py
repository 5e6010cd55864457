"""Prepares a test run, and adds the test matrix and other results to its summary."""

from __future__ import annotations

import signal

import pytest

from tests.abis import summary

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control ignores SIGINT for what it starts in the background, and programs inherit that.
    # A handler they do not inherit: they get the default action, and the tests go on.
    signal.signal(signal.SIGINT, lambda *_: None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of what ran on which ABI, and the counts that promises are made about."""
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
