"""Keeps the transcripts of failures in the files here that pytest runs, as `tests/conftest.py` does."""

from tests.conftest import pytest_runtest_makereport, pytest_runtest_setup

__all__ = ["pytest_runtest_makereport", "pytest_runtest_setup"]
