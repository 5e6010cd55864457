"""A stack as somebody shows it: frames with names, whoever unwound them.

Debuggers and the command line fill these in; texts, JSON and comparison work on them alike.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class ShownFrame(NamedTuple):
    """One frame with what is known of it."""

    level: int
    """0 for the innermost; frames that share their registers with another (inlined functions) do not count."""
    pc: int
    cfa: int | None
    """``None`` where nobody says, as for an outermost frame."""
    fp: int | None
    """The frame pointer register in this frame."""
    function: str
    """Empty where no symbol covers the pc."""
    place: str
    """Source line or module, for people."""
    module: str
    unwinder: str
    """Who found this frame's caller: ``sframe``, or the other unwinder's name."""
    offset: int = 0
    """How many bytes into the function the pc is, where nothing better than the symbols tells the place."""


class Stack(NamedTuple):
    """The stack of one thread."""

    thread: str
    """The thread's id, as the debugger or the system numbers it."""
    title: str
    """The line that introduces the thread where several are shown."""
    frames: tuple[ShownFrame, ...]
    end: str
    """Why there are no more frames."""

    def to_json(self) -> dict[str, Any]:
        """Return the thread as ``backtrace --json`` has it."""
        frames = [
            {
                "level": frame.level,
                "pc": frame.pc,
                "cfa": frame.cfa,
                "function": frame.function or None,
                "module": frame.module or None,
                "unwinder": frame.unwinder or None,
            }
            for frame in self.frames
        ]
        return {"id": self.thread, "frames": frames, "end": self.end}


def to_text(stack: Stack) -> list[str]:
    """Return the lines that show a stack."""
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
    return f"{name} ({frame.place})" if frame.place else name
