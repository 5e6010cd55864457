"""Listings of samples and of the C library have all rows and rules that readelf of binutils 2.47 prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.cfi.libraries import FOLDERS
from lab.show.counting import compare
from sframe_unwind.convert.to_sframe import Wanted, convert_to_sframe
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


def test_every_row_of_the_c_library_is_listed(tmp_path: Path) -> None:
    """All functions of the system's C library, with SFrame from its CFI."""
    copy = tmp_path / "libc.so"
    convert_to_sframe(FOLDERS["amd64"] / "libc.so.6", copy, Wanted())
    with toolchain_needed():
        counts = compare(copy, toolchain("amd64", 3))
    assert counts.sframe > 20_000
    assert counts.dwarf > 20_000
