"""The listings of samples have every row of SFrame and every rule of the CFI that readelf of binutils 2.47 prints."""

from __future__ import annotations

import pytest

from lab.show.counting import compare
from tests.missing import toolchain_needed
from tests.samples.build import build, toolchain


@pytest.mark.parametrize(
    ("name", "abi", "variant"),
    [
        ("plt", "amd64", "O2"),
        ("realign", "amd64", "O2"),
        ("callback", "aarch64", "pac"),
        ("plt", "aarch64", "O2"),
        ("free_walk", "aarch64_be", "pacb"),
        ("callback", "s390x", "O0"),
        ("plt", "s390x", "O2"),
    ],
)
def test_every_row_is_listed(name: str, abi: str, variant: str) -> None:
    with toolchain_needed():
        counts = compare(build(name, abi, 3, variant), toolchain(abi, 3))
    assert counts.sframe >= 9
    assert counts.dwarf >= 9
