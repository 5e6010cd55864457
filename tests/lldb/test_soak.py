"""A few rounds of the soak test; `python -m tests.lldb.soak` runs many."""

from __future__ import annotations

import pytest

from tests.lldb.debuggers import PROVIDING, find
from tests.lldb.soak import WAYS, soak

ROUNDS = 2


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.parametrize("way", list(WAYS))
def test_soak(lldb: str, way: str) -> None:
    soak(find(lldb), way, range(ROUNDS))
