"""The cells of the test matrix (ABI, version, debugger, variant), and the reasons why some are empty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.abis.debuggers import DEBUGGERS
from tests.expectations import STOPS, WITHOUT_CFI, Stop
from tests.samples.catalogue import ABIS, SAMPLES

VARIANTS = ("O0", "O2", "fp")
ENCODED = {("s390x", 2)}
"""Versions that no producer writes; see `tests.abis.rewrite`."""

ABSENT = {("s390x", 1): "the format has s390x from version 2 on"}
"""Versions that do not exist for an ABI."""

ALL = STOPS + WITHOUT_CFI


class Cell(NamedTuple):
    """One session of a debugger."""

    abi: str
    version: int
    debugger: str
    variant: str


def cells() -> Iterator[Cell]:
    """Yield all cells."""
    for abi in ABIS:
        for version in (1, 2, 3):
            if (abi, version) not in ABSENT:
                for name in DEBUGGERS:
                    for variant in VARIANTS:
                        yield Cell(abi, version, name, variant)


def stops(cell: Cell) -> list[Stop]:
    """Return the stops that are tested in a cell."""
    return [stop for stop in ALL if not why_not(stop.sample, cell.abi, cell.variant)]


def why_not(sample: str, abi: str, variant: str) -> str:
    """Return why a sample is not built in a variant; empty: it is built."""
    if abi not in SAMPLES[sample].abis:
        if not ABIS[abi].has_libc:
            return "there is no C library for it"
        return f"its stubs exist on {', '.join(SAMPLES[sample].abis)} alone"
    if variant not in SAMPLES[sample].variants_for(abi):
        return {
            "tail_inline": "without optimisation there are no tail calls",
            "free_leaf": "it is about functions without a frame, whose frame pointer the optimiser uses otherwise",
        }[sample]
    return ""


def left_out() -> Iterator[tuple[str, str]]:
    """Yield the combinations that the matrix lacks, with the reasons."""
    for (abi, version), reason in ABSENT.items():
        yield f"{abi}, version {version}", reason
    missing: dict[tuple[str, str], dict[str, None]] = {}
    for abi in ABIS:
        for variant in VARIANTS:
            for stop in ALL:
                reason = why_not(stop.sample, abi, variant)
                if reason:
                    where = variant if abi in SAMPLES[stop.sample].abis else abi
                    missing.setdefault((where, reason), {})[stop.sample] = None
    for (where, reason), samples in missing.items():
        yield f"{where}: {', '.join(samples)}", reason
