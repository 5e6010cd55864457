"""Changes the settings, also for frames that are already shown."""

from __future__ import annotations

import contextlib

from lldb_plugin.lifecycle import shown_frames, stop_hooks, targets
from lldb_plugin.lifecycle.watching import WATCHER
from lldb_plugin.session import SESSION
from lldb_plugin.version import TAKES_FRAMES
from sframe_unwind.debugger.settings import Settings


def change(settings: Settings) -> None:
    """Change the settings in all targets of all debuggers; the frames that are selected stay selected."""
    # Until the provider is registered, which another thread may be about to do, LLDB shows its own frames.
    with WATCHER.alone():
        _change(settings)


def _change(settings: Settings) -> None:
    if settings.generate != SESSION.settings.generate:
        SESSION.forget_modules()
    SESSION.settings = settings
    if not TAKES_FRAMES:
        return
    # Its base classes exist since LLDB 22.  It is loaded now: a program that a client launches can stop in 100 ms.
    from lldb_plugin.lifecycle import provider  # noqa: F401

    WATCHER.is_awake = True
    WATCHER.concerns_all = settings.strict or settings.generate
    known = WATCHER.targets()
    with contextlib.ExitStack() as selections:
        for target in known:
            selections.enter_context(shown_frames.selections_kept(target))
        for target in known:
            targets.fit(target, has_frames=target.GetProcess().IsValid())
            if SESSION.is_off() and not targets.is_plugged(target):
                stop_hooks.need_no_more(target)
        shown_frames.forget_frames()
