"""Stops at which GDB's own unwinder is known to be wrong despite CFI; tests compare with the expected stack there."""

from __future__ import annotations

from typing import Any

from tests.expectations import Stop
from tests.gdb import driver

_LEAF = "it cannot read a return address saved in a floating-point register"
_SIGNAL = "it does not get beyond the function that a fault interrupted"

WRONG: dict[tuple[str, str], dict[str, str]] = {
    ("s390x", "system"): {
        "free_leaf-sample_in_leaf": _LEAF,
        "signals-fault": _SIGNAL,
        "signals-altstack": _SIGNAL,
        "signals-above": _SIGNAL,
    }
}
"""By ABI and debugger, the stops with the errors of GDB's own unwinder."""


FIXED = 18
"""The first version of GDB without these errors."""
_ADDRESS_BITS = 48


def is_wrong(stop: Stop, abi: str, debugger: str) -> bool:
    """Return whether GDB's own stack at a stop is incomplete."""
    found = driver.find(debugger, abi)
    return stop.name in WRONG.get((abi, debugger), {}) and found is not None and found.version[0] < FIXED


def first_signed(stop: Stop, chain: list[dict[str, Any]]) -> int | None:
    """Return the first frame, behind a signal handler, in whose pc GDB's own unwinder has left the signature.

    GDB numbers the registers there in its own order.  With an emulator that has more of them, it takes another one for
    the mask of signed addresses.  The C library of Debian 13 signs its addresses, that of Debian 12 does not.
    """
    if stop.sample != "signals":
        return None
    return next((level for level, frame in enumerate(chain) if frame["pc"] >> _ADDRESS_BITS), None)


def is_lost_in_library(stop: Stop, chain: list[dict[str, Any]]) -> bool:
    """Return whether that signature comes from a frame of the C library, which has no SFrame."""
    signed = first_signed(stop, chain)
    return signed is not None and chain[signed - 1]["name"] not in stop.functions
