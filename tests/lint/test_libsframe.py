"""The profiles of libsframe against the libraries of binutils 2.44 and 2.47."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.lint import libsframe
from tests.lint.libsframe import LIBRARIES, Library

COUNT = 800


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: str(library.profile))
def test_damaged_sections(library: Library) -> None:
    """`python -m tests.lint.libsframe` tries 20,000."""
    seen: Counter[str] = Counter()
    assert libsframe.compare(library, range(COUNT), seen) == []
    assert seen["accepted: whole read"] > COUNT // 20
    assert seen["accepted with losses: in part read"] > COUNT // 40
    assert seen["refused: not read"] > COUNT // 8
