"""Older versions give the same rules as version 3, for which all other tests of the samples are made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sframe_unwind
from sframe_unwind import UnwindRule
from sframe_unwind.sframe.constants import NEWEST
from tests.missing import toolchain_needed
from tests.samples import readelf
from tests.samples.build import build, toolchain
from tests.samples.catalogue import ABIS, SAMPLES

ONLY_NEWEST = {"_start", "aligned_local", "aligned_entry"}
"""Functions that older versions cannot describe as the CFI does: outermost frames, realigned stacks."""


def builds() -> Iterator[tuple[str, str, int]]:
    """Yield each sample for each ABI and older version."""
    for name, sample in SAMPLES.items():
        for abi in sample.abis:
            for version in ABIS[abi].versions:
                if version != NEWEST and not sample.stripped:
                    yield name, abi, version


@pytest.mark.parametrize(("name", "abi", "version"), list(builds()))
def test_the_rules_of_each_function_are_those_of_the_newest_version(name: str, abi: str, version: int) -> None:
    newest, older = rules(name, abi, NEWEST), rules(name, abi, version)
    common = newest.keys() - ONLY_NEWEST
    assert common
    assert older.keys() - ONLY_NEWEST == common
    for function in common:
        assert older[function] == newest[function]


def rules(name: str, abi: str, version: int) -> dict[str, tuple[int, list[tuple[int, UnwindRule]]]]:
    """Return size and rows of each function that has a symbol."""
    with toolchain_needed():
        path = build(name, abi, version)
        symbols = readelf.read_symbols(toolchain(abi, version), path)
    (section,) = sframe_unwind.load(path)
    functions = {function.start: function for function in section.functions()}
    return {
        symbol: (functions[where.address].fde.size, functions[where.address].rows())
        for symbol, where in symbols.items()
        if where.address in functions and not symbol.startswith("$")  # AArch64's mapping symbols name no function
    }
