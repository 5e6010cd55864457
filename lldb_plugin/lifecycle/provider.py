"""The scripted frame provider: LLDB asks whether it applies whenever it lists a thread's frames.

All work is done before this question is answered.  If LLDB's own unwinder gives the same stack as SFrame, the provider
does not apply: the frames are then LLDB's own in every respect, and LLDB unwinds them only when they are needed.  If
the provider applies, LLDB unwinds its own whole stack for each list, so nothing can be lazy any more.

The locks also require this.  While LLDB asks for frames, it holds locks that its own interface needs: access to a frame
in ``get_frame_at_index`` always deadlocks LLDB 23.1.0, and reading memory or resolving an address sometimes deadlocks
23.1.4.  LLDB holds no such lock yet when it asks whether the provider applies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import lldb
from lldb.plugins.scripted_frame_provider import ScriptedFrameProvider

from lldb_plugin.lifecycle.questions import Questions

if TYPE_CHECKING:
    from typing import Union

    from lldb_plugin.frames.scripted_frame import SFrameFrame

    Answer = Union[int, SFrameFrame]
    """LLDB's representation of a frame: the index of its own frame, or a frame of a script."""


class SFrameFrameProvider(ScriptedFrameProvider):
    """Provides SFrame's frames, and all of LLDB's own where these are the same or SFrame has none.

    There is a separate class for each target (:func:`for_target`): LLDB passes a thread with its question, and asking
    the thread for its target waits for the target's lock.
    """

    target: ClassVar[lldb.SBTarget]
    questions: ClassVar[Questions]

    def __init__(self, input_frames: lldb.SBFrameList, args: lldb.SBStructuredData) -> None:
        # The base class's constructor is not called: it waits for locks.
        decided = self.questions.decided(input_frames)
        self._shown = None if decided is None else decided.shown
        self._maker = None if decided is None else decided.maker

    @classmethod
    def applies_to_thread(cls, thread: lldb.SBThread) -> bool:
        """Return whether some frame of the thread is SFrame's and not LLDB's own; the frames are then known."""
        return cls.questions.applies(cls.target, thread)

    @staticmethod
    def get_description() -> str:
        """Return what ``target frame-provider list`` shows."""
        return "Stack frames from SFrame; see 'help sframe'"

    def get_frame_at_index(self, index: int) -> Answer | None:
        """Return the frame at an index; ``None``: the index is after the last frame."""
        if self._shown is None or self._maker is None:
            return index
        try:
            shown = self._shown[index]
        except IndexError:
            return None
        # Made when it is asked for: a stack overflow has 100,000 frames, of which few are looked at.
        return shown if isinstance(shown, int) else self._maker.make(index, *shown)


def for_target(target: lldb.SBTarget, number: int, questions: Questions) -> type[SFrameFrameProvider]:
    """Return the provider's class for one target."""
    # LLDB refuses a class that inherits the methods that the base class declares abstract.
    own = {name: vars(SFrameFrameProvider)[name] for name in ("__init__", "get_description", "get_frame_at_index")}
    name = f"{SFrameFrameProvider.__name__}{number}"
    return type(name, (SFrameFrameProvider,), {"target": target, "questions": questions, **own})
