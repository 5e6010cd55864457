"""Which :class:`gdb_plugin.process.Process` is current, and when it no longer holds."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

import gdb

from gdb_plugin.execute import may_execute
from gdb_plugin.names import FrameNames
from gdb_plugin.process import Process, arch_of
from gdb_plugin.symbols import Symbols

_RAN = ("cont", "exited", "inferior_call", "memory_changed")
"""The inferior ran, or somebody wrote to it."""
_MAY_HAVE_CHANGED = (
    "stop",
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
    :param frame_names: is told which process is current.
    """

    def __init__(self, report: Callable[[str], None], frame_names: FrameNames) -> None:
        self._report = report
        self._frame_names = frame_names
        self._symbols = Symbols()
        self._known: dict[int, tuple[Any, Process | None]] = {}
        self._runs = 0
        self._seen: dict[int, int] = {}
        self._fresh: tuple[int, int] | None = None
        self._asked: tuple[int, int] | None = None
        self._process: Process | None = None
        self._settled = True
        self._behind = False
        for names, handler in (
            (_RAN, self._ran),
            (_MAY_HAVE_CHANGED, self.forget),
            (("stop",), self._stopped),
            (("stop",), partial(self._look_up, True)),
            (("before_prompt",), partial(self._look_up, False)),
            (("before_prompt",), self._settle),
        ):
            for name in names:
                registry = getattr(gdb.events, name, None)
                if registry is not None:
                    registry.connect(handler)

    def forget(self, event: object = None) -> None:
        """Take nothing for granted any more: what holds still is found out at the next use."""
        self._fresh = None

    def _ran(self, event: object = None) -> None:
        self._runs += 1
        self._settled = False
        self.forget()

    def _stopped(self, event: Any) -> None:
        if not any(point.commands for point in getattr(event, "breakpoints", ())):
            self._settle()

    def _look_up(self, at_stop: bool, event: object = None) -> None:
        """Begin anew where the symbols of run-time code are found only now."""
        if self._symbols.look_up(at_stop):
            self._known.pop(gdb.selected_inferior().num, None)
            self.forget()
            gdb.invalidate_cached_frames()

    def _settle(self, event: object = None) -> None:
        """Go on where a GDB command could not be run: there are no breakpoint commands left to be run."""
        self._settled = True
        if self._behind:
            self._behind = False
            self.forget()
            gdb.invalidate_cached_frames()

    def current(self, frame: Any, in_command: bool = False) -> Process | None:
        """Return the selected inferior's process, ``None`` where SFrame has no ABI for it.

        :param frame: some frame of it, pending or not.
        :param in_command: it is for a command of ours and not for the unwinder, so that GDB commands can be run: those
            of a breakpoint have been run before, or are being run and are not begun anew.
        """
        if in_command:
            self._look_up(False)
        inferior = gdb.selected_inferior()
        key = self._asked = inferior.num, inferior.pid
        if key == self._fresh:
            return self._process
        # The objfile objects themselves are kept, so that none can be mistaken for a later one.
        state = (inferior.pid, gdb.objfiles())
        state_known, process = self._known.get(inferior.num, (None, None))
        if state_known != state:
            if not (in_command or self._settled or may_execute()):
                self._behind = True
                return None
            arch = arch_of(frame.architecture())
            process = Process(frame.architecture(), arch, self._symbols, self._report) if arch else None
            self._known[inferior.num] = state, process
        elif process:
            process.read_word.forget()
            # GDB shows where the process stopped, and then asks again for all that the user wants to see there.
            if self._seen.get(inferior.num) != self._runs or any(t.is_running() for t in inferior.threads()):
                process.modules.look_again()
        self._seen[inferior.num] = self._runs
        self._fresh, self._process = key, process
        self._frame_names.follow(process)
        return process

    def is_gone(self) -> bool:
        """Return whether the inferior that was current is no more: the connection broke when it was read."""
        inferior = gdb.selected_inferior()
        return (inferior.num, inferior.pid) != self._asked
