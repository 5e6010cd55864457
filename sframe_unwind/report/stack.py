"""A stack for display: frames with names, independent of the unwinder.

The plugins and the command line create these values; the text, JSON and comparison outputs use them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sframe_unwind.unwind.modules import Modules
from sframe_unwind.unwind.walk import SFRAME

GENERATED = "sframe (generated)"
"""The name of the unwinder in frames whose caller SFrame gave that was generated from the CFI of the module."""


def by_sframe(pc: int, modules: Modules) -> str:
    """Return the name of the unwinder in a frame whose caller SFrame gave."""
    module = modules.find(pc)
    return GENERATED if module is not None and module.is_generated else SFRAME


INLINED = "inlined"
"""In the place of the unwinder of a frame: an inlined function, whose registers are those of the next frame."""


class ShownFrame(NamedTuple):
    """One frame."""

    level: int
    """0 for the innermost frame."""
    pc: int
    cfa: int | None
    """``None``: not known, as for the outermost frame."""
    fp: int | None
    """Value of the frame pointer register in this frame; ``None``: not known."""
    function: str
    """Name of the function; empty: no symbol covers the pc."""
    place: str
    """Source line, or module with offset, as text."""
    module: str
    """Path of the module; empty: not known."""
    unwinder: str
    """Name of the unwinder that found the caller of this frame; empty: none did."""
    offset: int = 0
    """Offset of the pc in the function in bytes; 0 if :attr:`place` is a source line."""
    address: int | None = None
    """The pc as an address in the module's file, without the load bias; ``None``: not known."""
    lookup: int | None = None
    """Address that unwind data is looked up by; ``None``: not known."""
    file: str = ""
    """Path of the source file, where :attr:`place` is not the source line; empty: not known."""
    line: int = 0
    """Line in it; 0: not known."""


class Stack(NamedTuple):
    """The stack of one thread."""

    thread: str
    """Id of the thread in the debugger or the system."""
    title: str
    """Heading of the thread in output with several threads."""
    frames: tuple[ShownFrame, ...]
    end: str
    """Why the stack ends."""
    name: str = ""
    """Of the thread; empty: not known."""
    signal: str = ""
    """The signal that ended the process, if it was sent to this thread."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of the thread in ``backtrace --json``."""
        frames = [
            {
                "level": frame.level,
                "pc": frame.pc,
                "cfa": frame.cfa,
                "function": frame.function or None,
                "offset": frame.offset if frame.function else None,
                "address": frame.address,
                "module": frame.module or None,
                "file": frame.file or None,
                "line": frame.line or None,
                "inlined": frame.unwinder == INLINED,
                "unwinder": frame.unwinder if frame.unwinder not in ("", INLINED) else None,
            }
            for frame in self.frames
        ]
        title = {"id": self.thread, "name": self.name or None, "signal": self.signal or None}
        return {**title, "frames": frames, "end": self.end}


def to_text(stack: Stack) -> list[str]:
    """Return the stack as lines of text."""
    labels = [_label(frame) for frame in stack.frames]
    width = max(map(len, labels), default=0)
    digits = len(str(stack.frames[-1].level)) if stack.frames else 1
    lines = [
        f"#{frame.level:<{digits}}  {frame.pc:#018x}  {label:<{width}}  {frame.unwinder or '-'}"
        for frame, label in zip(stack.frames, labels)
    ]
    return [*lines, f"end: {stack.end}"]


def _label(frame: ShownFrame) -> str:
    name = frame.function or "??"
    if frame.offset:
        name = f"{name}+{frame.offset:#x}"
    if frame.file and frame.line:
        name = f"{name} at {frame.file.rpartition('/')[2]}:{frame.line}"
    return f"{name} ({frame.place})" if frame.place else name
