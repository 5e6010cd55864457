"""Adds the test matrix and other results to the summary of a test run."""

from __future__ import annotations

import pytest

from tests.abis import summary


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
