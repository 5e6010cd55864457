"""The stack of a thread as the core shows and compares it, by LLDB and by SFrame."""

from __future__ import annotations

from typing import NamedTuple

import lldb

from lldb_plugin.frame_plan import plan, walk
from lldb_plugin.modes import ALWAYS
from lldb_plugin.native import NAME, NativeStack
from lldb_plugin.process import Process
from lldb_plugin.session import SESSION
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import WordReader
from sframe_unwind.report.compare import Comparison, compare
from sframe_unwind.report.explain import FrameContext
from sframe_unwind.report.stack import ShownFrame, Stack
from sframe_unwind.unwind.walk import End


class Snapshot(NamedTuple):
    """A thread with LLDB's own frames."""

    thread: lldb.SBThread
    process: Process
    native: NativeStack


def take(thread: lldb.SBThread) -> Snapshot:
    """Return a stopped thread's frames.

    :raises SFrameError: there are none, or SFrame has no ABI for the process.
    """
    return Snapshot(thread, SESSION.process(thread.GetProcess()), SESSION.native(thread))


def by_sframe(taken: Snapshot, limit: int | None = None) -> Stack:
    """Return the stack that SFrame gives, LLDB's frames where it has no data.

    :param limit: how many frames at the most.
    """
    steps = walk(taken.process, taken.native, ALWAYS)
    frames: list[ShownFrame] = []
    end = ""
    for frame in steps:
        if len(frames) == limit:
            end = f"only the innermost {limit} frames were asked for"
            break
        frames.append(_shown(taken, frame.level, frame.pc, frame.cfa, frame.fp, frame.unwinder, frame.interrupted))
    if not end:
        end = steps.end.value if steps.end else ""
        if steps.end is not End.OUTERMOST and steps.detail:
            end = f"{end}: {steps.detail}"
    return _titled(taken, frames, end)


def native(taken: Snapshot) -> Stack:
    """Return the stack that LLDB's own unwinder gives."""
    frames = [
        _shown(taken, level, frame.pc, frame.cfa, frame.fp, NAME, level == 0)
        for level, frame in enumerate(taken.native.frames)
    ]
    return _titled(taken, frames, "LLDB finds no more frames")


def comparison(taken: Snapshot) -> Comparison:
    """Return both, compared."""
    return compare(native(taken), by_sframe(taken))


def selected(taken: Snapshot) -> tuple[int, FrameContext]:
    """Return the selected frame's lookup address and what explains it.

    :raises SFrameError: SFrame's walk does not reach the frame.
    """
    index = taken.thread.GetSelectedFrame().GetFrameID()
    walked = plan(taken.process, taken.native, SESSION.mode, SESSION.strict).walked
    frame = walked[index] if index < len(walked) else None
    if frame is None:
        raise SFrameError(f"SFrame's walk does not reach frame {index}")
    reader = taken.process.register_reader(taken.thread.GetFrameAtIndex(0)) if frame.level == 0 else None
    read_word = WordReader(taken.process.read, taken.process.arch.byteorder)
    here = FrameContext(frame.sp, frame.fp, read_word, reader, taken.process.pac_mask)
    return frame.pc if frame.interrupted else frame.pc - 1, here


def describe(taken: Snapshot, pc: int) -> str:
    """Return what an address is called: function and line, as far as known."""
    name, place, _ = _names(taken, pc)
    return f"{name} ({place})" if place else name


def _names(taken: Snapshot, pc: int) -> tuple[str, str, str]:
    """Return function, source line or module, and the module's path of an address."""
    address = taken.thread.GetProcess().GetTarget().ResolveLoadAddress(pc)
    module = address.GetModule().GetFileSpec()
    function, symbol = address.GetFunction(), address.GetSymbol()
    name = function.GetName() if function.IsValid() else symbol.GetName() if symbol.IsValid() else ""
    line = address.GetLineEntry()
    place = module.GetFilename() or ""
    if line.IsValid() and line.GetLine():
        place = f"{line.GetFileSpec().GetFilename()}:{line.GetLine()}"
    found = taken.process.modules.find(pc)
    if not name and found is not None and found.run_time_name(pc):
        return found.run_time_name(pc), found.name, found.name
    return name or "", place, module.fullpath or ""


def _shown(
    taken: Snapshot, level: int, pc: int, cfa: int | None, fp: int | None, unwinder: str, interrupted: bool
) -> ShownFrame:
    name, place, module = _names(taken, pc if interrupted else pc - 1)
    return ShownFrame(level, pc, cfa, fp, name, place, module, unwinder)


def _titled(taken: Snapshot, frames: list[ShownFrame], end: str) -> Stack:
    number = str(taken.thread.GetIndexID())
    return Stack(number, f'Thread {number} "{taken.thread.GetName() or ""}"', tuple(frames), end)
