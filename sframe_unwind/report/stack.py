"""A stack for display: frames with names, independent of the unwinder.

The plugins and the command line create these values; the text, JSON and comparison outputs use them.
"""

from __future__ import annotations

from typing import Any

from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report.terminal import shortened
from sframe_unwind.unwind.code_match import CODE, CodeMatch
from sframe_unwind.unwind.modules import Found, Modules
from sframe_unwind.unwind.walk import SFRAME, STUB_CODE, Frame

GENERATED = "sframe (generated)"
"""The name of the unwinder in frames whose caller was found by SFrame that was generated from the module's CFI."""

_LONGEST_PADDED = 100
"""Maximum length of labels to which shorter labels are padded, in characters."""
_SHORTEST_NAME = 12


def by_sframe(address: int, modules: Modules) -> str:
    """Return the name of the unwinder for a frame that was unwound by the row for a lookup address, or by its code."""
    found = modules.results[address]
    if isinstance(found, Found) and isinstance(found.match, CodeMatch):
        return CODE
    if isinstance(found, Found) and found.is_refuted:
        return STUB_CODE
    module = modules.find(address)
    return GENERATED if module is not None and module.is_generated else SFRAME


INLINED = "inlined"
"""Name in place of an unwinder: an inlined function, whose registers are those of the next frame."""


SIGNAL_FRAME = "<signal handler called>"
"""The function name of a signal frame, as in GDB."""


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
    """Address for the lookup of unwind data; ``None``: not known."""
    file: str = ""
    """Path of the source file, if :attr:`place` is not the source line; empty: not known."""
    line: int = 0
    """Line in the source file; 0: not known."""

    def at(self, level: int, frame: Frame) -> ShownFrame:
        """Return this frame with the level, CFA and frame pointer of another one at the same pc."""
        # A fifth of the time of `_replace`.
        return tuple.__new__(ShownFrame, (level, self.pc, frame.cfa, frame.fp, *self[4:]))


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
    """Name of the thread; empty: not known."""
    signal: str = ""
    """The signal that ended the process, if it was sent to this thread."""
    not_stopped: str = ""
    """Why the thread was not stopped, with the source of its registers; empty: it was stopped."""

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
        title["not_stopped"] = self.not_stopped or None
        return {**title, "frames": frames, "end": self.end}


def to_text(stack: Stack, columns: int | None = None) -> list[str]:
    """Return the stack as lines of text.

    :param columns: maximum width of a line; names of functions that are too long are cut in the middle, to not less
        than 12 characters.  ``None``: no line is cut.
    """
    digits = len(str(stack.frames[-1].level)) if stack.frames else 1
    heads = [f"#{frame.level:<{digits}}  {frame.pc:#018x}  " for frame in stack.frames]
    unwinders = [frame.unwinder or "-" for frame in stack.frames]
    room = None
    if columns is not None and stack.frames:
        room = columns - max(map(len, heads)) - max(map(len, unwinders)) - 2
    labels = [_label(frame, room) for frame in stack.frames]
    # One long name must not move the last column of all other lines out of the visible area.
    width = max((len(label) for label in labels if len(label) <= _LONGEST_PADDED), default=0)
    lines = [f"{head}{label:<{width}}  {unwinder}" for head, label, unwinder in zip(heads, labels, unwinders)]
    return [*lines, f"end: {stack.end}"]


def _label(frame: ShownFrame, room: int | None) -> str:
    name, rest = frame.function or "??", ""
    if frame.offset:
        rest = f"+{frame.offset:#x}"
    if frame.file and frame.line:
        rest = f"{rest} at {frame.file.rpartition('/')[2]}:{frame.line}"
    if frame.place:
        rest = f"{rest} ({frame.place})"
    return (name if room is None else shortened(name, max(room - len(rest), _SHORTEST_NAME))) + rest
