"""Whose each frame of a thread is: SFrame's walk against LLDB's own frames."""

from __future__ import annotations

from typing import NamedTuple, Union

from lldb_plugin.beyond import beyond
from lldb_plugin.native import NAME, NativeStack
from lldb_plugin.process import Process
from lldb_plugin.session import FALLBACK
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


class Plan(NamedTuple):
    """The frames that LLDB is to show, by index."""

    answers: tuple[Answer, ...]
    walked: tuple[Frame | None, ...]
    """For each index the frame of the walk behind it; ``None`` where only LLDB has one."""


def walk(process: Process, native: NativeStack, mode: str) -> Walk:
    """Return the walk over a thread's stack, LLDB's frames where SFrame has none."""
    read_word = WordReader(process.read, process.arch.byteorder)
    return Walk(
        process.arch,
        process.modules,
        native.innermost,
        read_word,
        native.read_register,
        beyond(process, native, read_word),
        process.pac_mask,
        skip=process.modules.has_cfi if mode == FALLBACK else None,
    )


def plan(process: Process, native: NativeStack, mode: str) -> Plan:
    """Return LLDB's own frame wherever SFrame agrees with it on pc, SP and CFA, or has nothing to say."""
    answers: list[Answer] = []
    walked: list[Frame | None] = []
    last: int | None = None
    steps = walk(process, native, mode)
    for frame in steps:
        last = _same(native, frame)
        shown: tuple[Answer, ...]
        if last is None:
            shown = ({"idx": len(answers), "pc": _shown_pc(process, frame)},)
        else:
            shown = native.frames[last].indexes
        answers += shown
        walked += [frame] * len(shown)
    if last is not None and steps.end not in (End.OUTERMOST, End.PC_ZERO):
        for behind in native.frames[last + 1 :]:  # the walk ended where LLDB goes on
            answers += behind.indexes
            walked += [None] * len(behind.indexes)
    return Plan(tuple(answers), tuple(walked))


def _shown_pc(process: Process, frame: Frame) -> int:
    """Return a frame's pc; of a call that is its function's last instruction the address of its last byte.

    The return address after that call is another function's, and LLDB would show that one.
    """
    answer = process.modules.answers[frame.pc - 1]
    if frame.interrupted or not isinstance(answer, Found) or answer.match.function.end != frame.pc:
        return frame.pc
    return frame.pc - 1


def _same(native: NativeStack, frame: Frame) -> int | None:
    number = native.by_registers.get((frame.pc, frame.sp))
    if number is None or (frame.unwinder != NAME and frame.cfa not in (None, native.frames[number].cfa)):
        return None
    return number
