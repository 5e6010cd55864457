"""Descriptions of the samples for GDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.expectations import Stop
from tests.missing import toolchain_needed
from tests.samples.build import build
from tests.samples.catalogue import ABIS, SAMPLES


def built(sample: str, abi: str, version: int, variant: str = "O2", pie: bool = True) -> Path:
    """Build a sample's executable; skip the test if there is no toolchain for it."""
    with toolchain_needed():
        return build(sample, abi, version, variant, pie)


def program(stop: Stop, executable: Path, abi: str) -> dict[str, Any]:
    """Return a program in the form for `tests.gdb.inside.program`."""
    return {
        "executable": str(executable),
        "arguments": stop.arguments,
        "emulator": ABIS[abi].emulator,
        "place": stop.place,
        "hits": stop.hits,
        "signals": stop.signals,
    }


def variants(sample: str, abi: str) -> list[tuple[str, bool]]:
    """Return the builds of a sample for one version: each variant, and one at a fixed address."""
    described = SAMPLES[sample]
    names = described.variants_for(abi)
    if described.freestanding:
        return [(name, False) for name in names]
    return [*((name, True) for name in names), ("O2", False)]
