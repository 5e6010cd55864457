"""Converts GDB's frames to values."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import gdb

from tests.gdb.inside.program import execute

KINDS = {
    gdb.NORMAL_FRAME: "normal",
    gdb.INLINE_FRAME: "inline",
    gdb.TAILCALL_FRAME: "tail call",
    gdb.SIGTRAMP_FRAME: "signal",
}


def chain() -> Iterator[gdb.Frame]:
    """Yield the selected thread's frames from the innermost outward."""
    frame = gdb.newest_frame()
    while frame is not None:
        yield frame
        frame = frame.older()


def frames(locations: bool = False) -> list[dict[str, Any]]:
    """Return the frames with their arguments; with `locations`, also the places in the debug information."""
    return [
        {
            "name": frame.name() or "??",
            "pc": frame.pc(),
            "kind": KINDS.get(frame.type(), "other"),
            "arguments": list(_arguments(frame, locations)),
        }
        for frame in chain()
    ]


def _arguments(frame: gdb.Frame, locations: bool) -> Iterator[dict[str, str]]:
    try:
        block = frame.block()
    except RuntimeError:  # no debug information
        return
    while block.function is None:
        block = block.superblock
    if locations:
        frame.select()
    for symbol in block:
        if symbol.is_argument:
            yield {
                "name": symbol.name,
                "value": _value(symbol, frame),
                "location": execute(f"info address {symbol.name}") if locations else "",
            }


def _value(symbol: gdb.Symbol, frame: gdb.Frame) -> str:
    try:
        return str(symbol.value(frame).format_string())
    except gdb.error as error:
        return f"<error: {error}>"


def word(address: int, order: str) -> int:
    """Return a word of 8 bytes in the memory of the process.

    :param order: the byte order: ``<`` or ``>``.
    """
    (value,) = struct.unpack(f"{order}Q", bytes(gdb.selected_inferior().read_memory(address, 8)))
    return int(value)
