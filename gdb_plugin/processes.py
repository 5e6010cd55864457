"""Which :class:`gdb_plugin.process.Process` is current, and when it no longer holds."""

from __future__ import annotations

from typing import Any, Callable

import gdb

from gdb_plugin.execute import may_execute
from gdb_plugin.process import Process, abi_of

_MAY_HAVE_CHANGED = (
    # The inferior ran, or somebody wrote to it.
    "cont",
    "stop",
    "exited",
    "inferior_call",
    "memory_changed",
    # Modules came or went.
    "new_objfile",
    "clear_objfiles",
    "free_objfile",
    "executable_changed",
    "corefile_changed",
    # Whatever else the user did.
    "before_prompt",
)


class Processes:
    """Keeps one process per inferior for as long as neither it nor its modules change.

    :param report: shows one line to the user.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._known: dict[int, tuple[Any, Process | None]] = {}
        self._fresh: tuple[int, int] | None = None
        self._process: Process | None = None
        for name in _MAY_HAVE_CHANGED:
            registry = getattr(gdb.events, name, None)
            if registry is not None:
                registry.connect(self.forget)

    def forget(self, event: object = None) -> None:
        """Take nothing for granted any more: what holds still is found out at the next use."""
        self._fresh = None

    def current(self, frame: Any) -> Process | None:
        """Return the selected inferior's process, ``None`` where SFrame has no ABI for it.

        :param frame: some frame of it, pending or not.
        """
        inferior = gdb.selected_inferior()
        key = inferior.num, inferior.pid
        if key == self._fresh:
            return self._process
        # The objfile objects themselves are kept, so that none can be mistaken for a later one.
        state = (inferior.pid, gdb.objfiles())
        state_known, process = self._known.get(inferior.num, (None, None))
        if state_known != state:
            if not may_execute():
                gdb.post_event(self._catch_up)
                return None
            abi = abi_of(frame.architecture())
            process = Process(frame.architecture(), abi, self._report) if abi else None
            self._known[inferior.num] = state, process
        elif process:
            process.read_word.forget()
            process.modules.look_again()
        self._fresh, self._process = key, process
        return process

    def _catch_up(self) -> None:
        self.forget()
        gdb.invalidate_cached_frames()
