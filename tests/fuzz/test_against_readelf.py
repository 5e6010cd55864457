"""A short run of the comparison with readelf."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lab.fuzz.against_readelf import KINDS, Comparison

COUNT = 60


@pytest.mark.parametrize(("abi", "version"), KINDS)
def test_what_readelf_accepts_reads_the_same(tmp_path: Path, abi: str, version: int) -> None:
    comparison = Comparison(abi, version, tmp_path)
    seen = Counter(comparison.compare(number) for number in range(COUNT))
    assert seen["the same"] + seen["the same but for functions refused here"] > COUNT // 10
    assert seen["both refuse"] > 0
