"""The fixture with the failing program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.program import hostile


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile `hostile.c`, and return the path of the program."""
    return hostile(tmp_path_factory.mktemp("hostile"))
