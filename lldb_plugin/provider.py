"""The scripted frame provider, which LLDB makes for each thread at each stop."""

from __future__ import annotations

from typing import Any

from lldb.plugins.scripted_frame_provider import ScriptedFrameProvider

from lldb_plugin.native import NativeStack
from lldb_plugin.plan import Answer, plan
from lldb_plugin.session import OFF, SESSION
from sframe_unwind.errors import SFrameError


class SFrameFrameProvider(ScriptedFrameProvider):
    """Frames by SFrame; LLDB's own, complete, where they are the same or SFrame has none.

    All of it happens in the constructor.  While frames are asked for, LLDB holds locks that its own interface wants:
    touching a frame deadlocks LLDB 23.1.0 always, reading memory or resolving an address 23.1.4 at times.
    """

    def __init__(self, input_frames: Any, args: Any) -> None:
        super().__init__(input_frames, args)
        self._answers: tuple[Answer, ...] | None = None
        if SESSION.mode == OFF:
            return
        try:
            if input_frames.GetSize():
                process = SESSION.process(self.process)
                native = NativeStack(process, input_frames)
                self._answers = plan(process, native, SESSION.mode).answers
                SESSION.keep(self.thread, native)
                native.release()
        except SFrameError as error:
            SESSION.report(str(error))
        except Exception as error:  # noqa: BLE001  # a bug of ours must not cost the user the backtrace
            SESSION.report(f"internal error, frames left to LLDB: {type(error).__name__}: {error}")

    @staticmethod
    def get_description() -> str:
        """Return what ``target frame-provider list`` shows."""
        return "Stack frames from SFrame; see 'help sframe'"

    def get_frame_at_index(self, index: int) -> Answer | None:
        """Return the frame at an index, ``None`` behind the last."""
        SESSION.note_shown()
        if self._answers is None:
            return index
        return self._answers[index] if index < len(self._answers) else None
