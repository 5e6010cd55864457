"""The LLDBs that the tests run in."""

from __future__ import annotations

import pytest

from tests.lldb.debuggers import PROVIDING, find


@pytest.fixture(params=PROVIDING)
def lldb(request: pytest.FixtureRequest) -> str:
    """Return each LLDB that takes frames."""
    return find(request.param)
