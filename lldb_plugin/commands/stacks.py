"""The stack of a thread by LLDB and by SFrame, in the core's terms for display and comparison."""

from __future__ import annotations

from functools import partial

import lldb

from lldb_plugin.frames.frame_plan import plan, walk
from lldb_plugin.frames.native import NAME, NativeStack
from lldb_plugin.frames.native_frames import NativeFrame
from lldb_plugin.lifecycle.session import Session
from lldb_plugin.process import places
from lldb_plugin.process.inlining import Scopes
from lldb_plugin.process.places import Places
from lldb_plugin.process.process import Process
from sframe_unwind.address import lookup_address
from sframe_unwind.debugger.code_judge import ProcessCode
from sframe_unwind.debugger.contexts import Name, frames_of, only
from sframe_unwind.debugger.settings import SFRAME_ALONE, Settings
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import WordReader
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report.compare import Comparison, compare
from sframe_unwind.report.explain import FrameContext
from sframe_unwind.report.stack import ShownFrame, Stack


class Snapshot(NamedTuple):
    """A stopped thread with LLDB's own frames."""

    settings: Settings
    thread: lldb.SBThread
    process: Process
    native: NativeStack
    names: dict[int, Name]
    """By lookup address, filled as names are needed."""


def take(session: Session, thread: lldb.SBThread, limit: int | None = None) -> Snapshot:
    """Return a stopped thread's frames.

    :param limit: maximum number of frames; ``None``: all.
    :raises SFrameError: there are none, or SFrame has no architecture for the process.
    """
    process = session.process(thread.GetProcess())
    # One more than wanted: the next frame of LLDB is the caller of the last one.
    native = session.native(thread, None if limit is None else limit + 1)
    return Snapshot(session.settings, thread, process, native, {})


def code(snapshot: Snapshot) -> ProcessCode:
    """Return the code of a thread's process."""
    return places.code(_places(snapshot), snapshot.process.modules, snapshot.process.read)


def by_sframe(snapshot: Snapshot, limit: int | None = None) -> Stack:
    """Return the stack by SFrame; frames without SFrame data are LLDB's.

    :param limit: maximum number of frames.
    """
    steps = walk(snapshot.process, snapshot.native, SFRAME_ALONE)
    return _titled(snapshot, *frames_of(steps, snapshot.process.modules, partial(name_of, snapshot), limit))


def native(snapshot: Snapshot, limit: int | None = None) -> Stack:
    """Return the stack by LLDB's own unwinder.

    :param limit: maximum number of frames.
    """
    known = snapshot.native.frames
    frames = tuple(_shown(snapshot, level, frame) for level, frame in enumerate(known[:limit]))
    end = "LLDB finds no more frames" if limit is None or len(known) <= limit else only(limit)
    return _titled(snapshot, frames, end)


def comparison(snapshot: Snapshot, limit: int | None = None) -> Comparison:
    """Return the comparison of both stacks."""
    return compare(native(snapshot, limit), by_sframe(snapshot, limit))


def selected_frame(context: lldb.SBExecutionContext, thread: lldb.SBThread) -> lldb.SBFrame:
    """Return the frame for which a command runs.

    :param context: has the frame that was selected when the command began.  A client can select another one meanwhile:
        LLDB's adapter for editors handles several requests at a time.
    :param thread: the thread of the command.
    """
    frame = context.GetFrame()
    return frame if frame.IsValid() else thread.GetSelectedFrame()


def explained(snapshot: Snapshot, index: int) -> tuple[int, FrameContext]:
    """Return a frame's lookup address, and the registers and memory to explain its row.

    :param index: LLDB's number of the frame.
    :raises SFrameError: SFrame's walk does not reach the frame.
    """
    scopes = Scopes(snapshot.thread.GetProcess().GetTarget())
    walked = plan(snapshot.process, snapshot.native, snapshot.settings, scopes).walked
    frame = walked[index] if index < len(walked) else None
    if frame is None:
        raise SFrameError(f"SFrame's walk does not reach frame {index}")
    process = snapshot.process
    reader = process.register_reader(snapshot.thread.GetFrameAtIndex(0)) if frame.level == 0 else None
    read_word = WordReader(process.read, process.arch.byteorder)
    context = FrameContext(frame.sp, frame.fp, read_word, reader, process.pac_mask)
    return lookup_address(frame.pc, frame.interrupted), context


def describe(snapshot: Snapshot, address: int) -> str:
    """Return the name of an address: function and line, as far as known."""
    return places.description(name_of(snapshot, address))


def name_of(snapshot: Snapshot, address: int) -> Name:
    """Return the name of the code at an address."""
    if address not in snapshot.names:
        snapshot.names[address] = places.name_at(_places(snapshot), snapshot.process.modules, address)
    return snapshot.names[address]


def _places(snapshot: Snapshot) -> Places:
    return places.in_process(snapshot.thread.GetProcess().GetTarget())


def _shown(snapshot: Snapshot, level: int, frame: NativeFrame) -> ShownFrame:
    address = lookup_address(frame.pc, interrupted=level == 0)
    cfa, fp = snapshot.native.cfa(frame), snapshot.native.fp(frame)
    return ShownFrame(level, frame.pc, cfa, fp, *name_of(snapshot, address), NAME, lookup=address)


def _titled(snapshot: Snapshot, frames: tuple[ShownFrame, ...], end: str) -> Stack:
    number = str(snapshot.thread.GetIndexID())
    return Stack(number, f'Thread {number} "{snapshot.thread.GetName() or ""}"', frames, end)
