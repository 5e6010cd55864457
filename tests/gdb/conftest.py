"""The debuggers that the tests run in."""

from __future__ import annotations

import pytest

from tests.gdb import driver
from tests.gdb.driver import Debugger
from tests.missing import absent


@pytest.fixture(params=["pypi", "system"])
def debugger(request: pytest.FixtureRequest) -> Debugger:
    """Return the GDB from PyPI (18 and later), or the system's (13 in Debian 12)."""
    return _debugger(request.param)


@pytest.fixture
def newest() -> Debugger:
    """Return the GDB from PyPI, or the system's if that is not installed."""
    found = driver.find("pypi") or driver.find("system")
    return found or absent(f"no GDB {driver.MINIMUM} or later")


def _debugger(name: str) -> Debugger:
    found = driver.find(name)
    return found or absent(f"no GDB {driver.MINIMUM} or later ({name})")
