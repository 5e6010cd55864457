"""A few rounds of the soak test; `python -m lab.lldb.soak` runs many."""

from __future__ import annotations

import pytest

from lab.lldb.soak import WAYS, soak
from tests.lldb.debuggers import PROVIDING, find

ROUNDS = 2


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.parametrize("way", list(WAYS))
def test_soak(lldb: str, way: str) -> None:
    soak(find(lldb), way, range(ROUNDS))
