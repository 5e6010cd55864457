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
_NO_NAME = "??"
_ADDRESS_BITS = 48


def is_wrong(stop: Stop, abi: str, debugger: str) -> bool:
    """Return whether GDB's own stack at a stop is incomplete."""
    found = driver.find(debugger, abi)
    return stop.name in WRONG.get((abi, debugger), {}) and found is not None and found.version[0] < FIXED


def first_wrong(stop: Stop, chain: list[dict[str, Any]]) -> int | None:
    """Return the first frame behind a signal handler that GDB's own unwinder gets wrong; ``None``: it is right.

    Before 18, GDB does not recognise the trampoline of QEMU 10 for s390x, which is in a library of QEMU's.  And GDB
    numbers the registers of AArch64 in its own order there.  With an emulator that has more of them, it takes another
    one for the mask of signed addresses.  Depending on its value, that leaves the signature in the pc, or removes bits
    of the address, so that the pc is in no function.  The C library of Debian 13 signs its addresses, that of Debian 12
    does not.
    """
    if stop.sample != "signals":
        return None
    handler = next((level for level, frame in enumerate(chain) if frame["kind"] == "signal"), None)
    if handler is None:
        return len(chain)
    behind = enumerate(chain[handler + 1 :], handler + 1)
    return next((level for level, frame in behind if frame["pc"] >> _ADDRESS_BITS or frame["name"] == _NO_NAME), None)


def is_lost_in_library(stop: Stop, chain: list[dict[str, Any]]) -> bool:
    """Return whether that frame is the caller of one of a library, which has no SFrame."""
    wrong = first_wrong(stop, chain)
    return wrong is not None and chain[wrong - 1]["name"] not in stop.functions
