"""Stops at which GDB's own unwinder is known to be wrong despite CFI; tests compare with the expected stack there."""

from __future__ import annotations

from tests.expectations import Stop

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


def is_wrong(stop: Stop, abi: str, debugger: str) -> bool:
    """Return whether GDB's own stack at a stop is incomplete."""
    return stop.name in WRONG.get((abi, debugger), {})
