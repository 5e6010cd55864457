"""Signs return addresses on AArch64, and checks their authentication codes."""

from __future__ import annotations

from sframe_unwind.code.interpret.state import Frame, State
from sframe_unwind.code.interpret.values import CFA, SIGNED_BASE, UNKNOWN, Value

_KEYS = 2
"""Number of keys.  Greater numbers stand for codes that are not computed with the stack pointer."""


def with_code(value: Value, key: int, state: State, frame: Frame) -> Value | None:
    """Return the return address with its authentication code; ``None``: that is not known, or the value is another.

    The code depends on the stack pointer: the function that checks it needs the same one.
    """
    if value != frame.return_address:
        return None
    if key >= _KEYS:
        return SIGNED_BASE, key
    base, offset = state.registers[frame.sp]
    return (SIGNED_BASE, key - 2 * _KEYS * offset) if base == CFA else None


def without_code(value: Value, key: int | None, state: State, frame: Frame) -> Value:
    """Return a return address without its authentication code; with another code than that of the key it is invalid.

    :param key: ``None``: the code is not checked.
    """
    if key is None:
        return frame.return_address if value[0] == SIGNED_BASE else value
    if value not in (frame.return_address, with_code(frame.return_address, key, state, frame)):
        return UNKNOWN if value[0] == SIGNED_BASE else value
    return UNKNOWN if value == frame.return_address else frame.return_address
