"""Decides, per frame, whether LLDB shows its own frame or SFrame's."""

from __future__ import annotations

from typing import NamedTuple, Union

from lldb_plugin.fallback import fallback
from lldb_plugin.modes import FALLBACK
from lldb_plugin.native import NAME, NativeStack
from lldb_plugin.process import Process
from sframe_unwind.memory import WordReader
from sframe_unwind.unwind.modules import Found
from sframe_unwind.unwind.walk import End, Frame, Walk

Answer = Union[int, "dict[str, int]"]
"""LLDB's own frame, by its index; or one with a pc and nothing more.

A frame with registers of its own (``ScriptedFrame``) crashes LLDB 22.1.0 and 23.1.0 as soon as it prints the frame's
arguments, and one without them when it evaluates an expression there.  With its pc alone LLDB finds function and line.
It looks them up at the pc itself, though a caller's pc is a return address: the line can be the one after the call.
What it shows of registers and variables there is that of its own frame of the same number, if it has so many.
None of this can be asked of a running LLDB.
"""


SFRAME = "sframe"
"""What the walk calls frames whose caller SFrame gave."""


class FramePlan(NamedTuple):
    """The frames that LLDB is to show, by index."""

    answers: tuple[Answer, ...]
    walked: tuple[Frame | None, ...]
    """For each index the frame of the walk behind it; ``None`` where only LLDB has one."""

    def is_native(self, count: int) -> bool:
        """Return whether these are just the frames that LLDB has, which are so many."""
        return self.answers == tuple(range(count))


def walk(process: Process, native: NativeStack, mode: str) -> Walk:
    """Return the walk over a thread's stack, LLDB's frames where SFrame has none."""
    read_word = WordReader(process.read, process.arch.byteorder)
    return Walk(
        process.arch,
        process.modules,
        native.innermost,
        read_word,
        native.read_register,
        fallback(process, native, read_word),
        process.pac_mask,
        leave=process.modules.has_cfi if mode == FALLBACK else None,
    )


def plan(process: Process, native: NativeStack, mode: str, strict: bool) -> FramePlan:
    """Return LLDB's own frame wherever SFrame agrees with it on pc, SP and CFA, or has nothing to say.

    :param strict: show SFrame's frame wherever SFrame covers the pc, though LLDB's is the same.
    """
    answers: list[Answer] = []
    walked: list[Frame | None] = []
    last: int | None = None
    steps = walk(process, native, mode)
    for frame in steps:
        last = _same(native, frame)
        shown: tuple[Answer, ...]
        if last is None or (strict and frame.level and frame.unwinder == SFRAME):
            shown = ({"idx": len(answers), "pc": _shown_pc(process, frame)},)
        else:
            shown = native.frames[last].indexes
        answers += shown
        walked += [frame] * len(shown)
    if last is not None and steps.end not in (End.OUTERMOST, End.PC_ZERO):
        for behind in native.frames[last + 1 :]:  # the walk ended where LLDB goes on
            answers += behind.indexes
            walked += [None] * len(behind.indexes)
    return FramePlan(tuple(answers), tuple(walked))


def _shown_pc(process: Process, frame: Frame) -> int:
    """Return a frame's pc; of a call that is its function's last instruction the address of its last byte.

    The return address after that call is another function's, and LLDB would show that one.
    """
    found = process.modules.answers[frame.pc - 1]
    if frame.interrupted or not isinstance(found, Found) or found.match.function.end != frame.pc:
        return frame.pc
    return frame.pc - 1


def _same(native: NativeStack, frame: Frame) -> int | None:
    """Return the number of the frame among LLDB's, ``None`` where LLDB has no such frame.

    The innermost frame is LLDB's own always: its registers are the thread's, whoever unwinds it.  LLDB tells by it
    where a step has to end, and a frame of a plugin is never the one that LLDB waits for.
    """
    if frame.level == 0:
        return 0
    number = native.by_registers.get((frame.pc, frame.sp))
    if number is None or (frame.unwinder != NAME and frame.cfa not in (None, native.frames[number].cfa)):
        return None
    return number
