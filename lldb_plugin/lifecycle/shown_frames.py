"""The frames that LLDB shows of stopped processes, and the frame that is selected among them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import lldb

from lldb_plugin.interface.telling import report
from lldb_plugin.lifecycle import invalidate
from lldb_plugin.lifecycle.targets import plugged
from lldb_plugin.session import SESSION


def fetch(thread: lldb.SBThread) -> None:
    """Make LLDB take all of SFrame's frames at once.

    If `bt` asks for one after the other, LLDB 23.1.0 counts its frames each time.
    """
    if thread.IsValid() and SESSION.replaced(thread):
        thread.GetNumFrames()


def forget_frames() -> None:
    """Make LLDB ask again for all frames of the targets that have the provider."""
    for target in plugged():
        # If the process runs, LLDB asks at the next stop.
        if target.GetProcess().GetState() == lldb.eStateStopped and not invalidate.forget_frames(target):
            report("this LLDB keeps the frames that it has shown; the mode counts from the next stop on")


@contextlib.contextmanager
def selections_kept(target: lldb.SBTarget) -> Iterator[None]:
    """Select the frame with the same number again in each thread, after a stopped process has got other frames."""
    process = target.GetProcess()
    if process.GetState() != lldb.eStateStopped:
        yield
        return
    frames = [(thread, thread.GetSelectedFrame()) for thread in process]
    selected = [(thread, frame.GetFrameID()) for thread, frame in frames if frame.IsValid() and frame.GetFrameID()]
    yield
    fetch(process.GetSelectedThread())
    for thread, index in selected:
        if index < thread.GetNumFrames():
            thread.SetSelectedFrame(index)
