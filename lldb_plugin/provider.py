"""The scripted frame provider, which LLDB makes for each thread at each stop."""

from __future__ import annotations

import lldb
from lldb.plugins.scripted_frame_provider import ScriptedFrameProvider

from lldb_plugin.locking import acquire
from lldb_plugin.native import NativeStack
from lldb_plugin.plan import Answer, plan
from lldb_plugin.session import OFF, SESSION
from lldb_plugin.targets import plugged_target
from sframe_unwind.errors import SFrameError

_PATIENCE = 1.0
"""Seconds to wait for LLDB's lock on the target."""


class SFrameFrameProvider(ScriptedFrameProvider):
    """Frames by SFrame; LLDB's own, complete, where they are the same or SFrame has none.

    All of it happens in the constructor.  While frames are asked for, LLDB holds locks that its own interface wants:
    touching a frame deadlocks LLDB 23.1.0 always, reading memory or resolving an address 23.1.4 at times.  The
    constructor must not wait there either, as whoever holds the target's lock may be waiting for these frames.
    """

    def __init__(self, input_frames: lldb.SBFrameList, args: lldb.SBStructuredData) -> None:
        # Not the base class's constructor: it waits for the lock.
        self._answers: tuple[Answer, ...] | None = None
        target = plugged_target(args)
        mutex = target.GetAPIMutex() if target else None
        if mutex is None:
            return
        if not acquire(mutex, _PATIENCE):
            SESSION.report("LLDB was busy, frames of a stop were left to it; 'sframe mode always' asks anew")
            return
        SESSION.planning = True
        try:
            self._plan(input_frames)
        except SFrameError as error:
            SESSION.report(str(error))
        except Exception as error:  # noqa: BLE001  # a bug of ours must not cost the user the backtrace
            SESSION.report(f"internal error, frames left to LLDB: {type(error).__name__}: {error}")
        finally:
            SESSION.planning = False
            mutex.unlock()

    def _plan(self, input_frames: lldb.SBFrameList) -> None:
        if input_frames.GetSize():
            thread = input_frames.GetThread()
            process = SESSION.process(thread.GetProcess())
            native = NativeStack(process, input_frames)
            self._answers = plan(process, native, SESSION.mode).answers
            SESSION.keep(thread, native)
            native.release()

    @staticmethod
    def applies_to_thread(_thread: lldb.SBThread) -> bool:
        """Return whether LLDB is to ask at all; it asks this first."""
        return bool(SESSION.mode != OFF)

    @staticmethod
    def get_description() -> str:
        """Return what ``target frame-provider list`` shows."""
        return "Stack frames from SFrame; see 'help sframe'"

    def get_frame_at_index(self, index: int) -> Answer | None:
        """Return the frame at an index, ``None`` behind the last."""
        if self._answers is None:
            return index
        return self._answers[index] if index < len(self._answers) else None
