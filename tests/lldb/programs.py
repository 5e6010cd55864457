"""Descriptions of the samples for the functions that run inside LLDB."""

from __future__ import annotations

from typing import Any

from tests.expectations import Stop
from tests.samples.build import build, run_command
from tests.samples.catalogue import ABIS, SAMPLES, SIGNED_VARIANTS


def program(stop: Stop, abi: str = "amd64", version: int = 3, variant: str = "O2") -> dict[str, Any]:
    """Build a sample; return its path, and the place where it is stopped."""
    executable = build(stop.sample, abi, version, variant)
    emulator = run_command(executable, abi)[: len(ABIS[abi].emulator)]
    return {
        "executable": str(executable),
        "arguments": list(stop.arguments),
        "emulator": emulator,
        "sysroot": emulator[emulator.index("-L") + 1] if "-L" in emulator else "",
        "place": stop.place,
        "hits": stop.hits,
        "signals": list(stop.signals),
    }


def is_built(stop: Stop, abi: str, variant: str) -> bool:
    """Return whether the program exists, and LLDB can run it.

    LLDB 22.1 and 23.1 crash without any plugin when a dynamically linked s390x program starts.
    """
    sample = SAMPLES[stop.sample]
    if abi == "s390x" and not sample.freestanding:
        return False
    return abi in sample.abis and variant in sample.variants_for(abi)


def is_signed(variant: str) -> bool:
    """Return whether return addresses are signed, which LLDB's own unwinder does not support."""
    return variant in SIGNED_VARIANTS
