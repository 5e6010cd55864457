"""Watches for the first module with SFrame, and takes no event from other listeners.

LLDB gives each kind of event of a debugger to one listener, so the plugin asks for no kind.  It listens to the debugger
itself, which tells of each file that LLDB opens, and to the targets that it knows; these have any number of listeners.
It then compares the modules of a target with those that the target had before.  Until a file concerns SFrame, the rest
of the plugin is not even loaded.

A thread of the plugin's waits for the events.  It can come later than a command that was typed ahead, or that a script
gives.  So the targets are also looked at before each command that shows frames or lets a process run.  LLDB calls the
plugin before such a command; that call prints nothing, and does not keep others from being called.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import lldb

from lldb_plugin.lifecycle.commanding import Commanding
from lldb_plugin.lifecycle.stack_changes import StackChanges
from sframe_unwind import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Callable

_SECONDS = 1
"""Seconds after which targets are looked at again: LLDB tells of no file that it has opened before."""
_AWAKE = 0.02
"""Seconds between looks once there has been SFrame: the next program may be one that LLDB has opened before."""
_NAPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Seconds between looks after an event: LLDB tells of a file before the target that it is for is listed."""
_SHOWING = ("thread backtrace", "thread step-out", "frame select", "frame info", "frame variable")
"""The commands before which targets are looked at; `bt`, `up` and `down` are other names of two of them."""
_STARTING = ("process launch", "process attach", "process connect", "process continue")
"""The commands before which targets are looked at, so that the provider is there at the next stop."""
_LISTING = ("target frame-provider list",)
"""The command that shows whether the provider is there."""
_PATIENCE = 3.0
"""Seconds for which a command waits, or the end of a debugger, while another thread looks at targets."""
_CHANGES = lldb.SBTarget.eBroadcastBitModulesLoaded | lldb.SBTarget.eBroadcastBitModulesUnloaded


class _Seen:
    """What a target had when it was looked at.

    :param process: the process's unique ID.
    :param modules: the number of modules.
    :param program: the path of the program.
    :param changes: the number of events about the modules.
    """

    def __init__(self, process: int, modules: int, program: str, changes: int) -> None:
        self.process = process
        self.modules = modules
        self.program = program
        self.changes = changes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Seen) and vars(self) == vars(other)


class Watcher:
    """Looks at the targets of all debuggers, in a thread of its own.

    :param prepare: called with a target that has modules which SFrame concerns, and with whether its process is new;
        see :meth:`lldb_plugin.lifecycle.new_modules.NewModules.prepare`.
    """

    def __init__(
        self, commanding: Commanding, stack_changes: StackChanges, prepare: Callable[[lldb.SBTarget, bool], bool]
    ) -> None:
        self._commanding = commanding
        self._stack_changes = stack_changes
        self._prepare = prepare
        self.is_awake = False
        """Whether the rest of the plugin is loaded: SFrame concerns a target, or the user has asked for it in all."""
        self.concerns_all = False
        """Whether the user's settings concern modules without SFrame, too."""
        self._debuggers: dict[int, lldb.SBDebugger] = {}
        # LLDB could find them by the number, but it holds the lock of its list while it destroys all of them.
        self._looking = threading.Lock()
        """Held while targets are looked at: no debugger is destroyed meanwhile."""
        self._seen: dict[int, _Seen] = {}
        self._heard: set[int] = set()
        """The targets whose events are heard."""
        self._examined: dict[int, int] = {}
        """By target, the number of modules that do not concern SFrame, from the first one of its list on."""
        self._changes: dict[int, int] = {}
        self._listener: lldb.SBListener | None = None
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        """Set when the thread is to end."""

    def watch(self, debugger: lldb.SBDebugger) -> None:
        """Look at the targets of a debugger now, and whenever LLDB opens a file for it."""
        if self._listener is None:
            self._listener, self._ended = lldb.SBListener("sframe-unwind"), threading.Event()
            listening = (self._listener, self._ended)
            self._thread = threading.Thread(target=self._listen, args=listening, name="sframe-unwind", daemon=True)
            self._thread.start()
        self._stack_changes.watch(debugger)
        self._debuggers[debugger.GetID()] = debugger
        debugger.AddDestroyCallback(self._leave)
        for command in (*_SHOWING, *_STARTING, *_LISTING):
            debugger.GetCommandInterpreter().SetCommandOverrideCallback(command, self._before_command)
        self._listener.StartListeningForEvents(debugger.GetBroadcaster(), lldb.SBDebugger.eBroadcastBitProgress)
        self.look()

    def look(self) -> None:
        """Look at the targets that have changed."""
        with self._looking:
            self._look_at_all()

    def _look_at_all(self) -> None:
        for target in self.targets():
            self._look_at(target)

    @contextlib.contextmanager
    def alone(self) -> Iterator[bool]:
        """Let no other thread look at targets during a command, after waiting for a registration that has begun.

        :return: in the context, whether that succeeded; ``False``: the other thread waits for a lock, perhaps for one
            that this thread holds, as in a command of a breakpoint.
        """
        with self._commanding.about_to_show_frames():
            is_alone = self._looking.acquire(timeout=_PATIENCE)
            try:
                yield is_alone
            finally:
                if is_alone:
                    self._looking.release()

    def _before_command(self, *_words: str) -> bool:
        """Look at the targets; return ``False``: LLDB is to run the command, whose words are the arguments."""
        with self.alone() as is_alone:
            if is_alone:
                self._look_at_all()
        return False

    def targets(self) -> list[lldb.SBTarget]:
        """Return the targets of all debuggers."""
        return [
            debugger.GetTargetAtIndex(index)
            for debugger in list(self._debuggers.values())
            for index in range(debugger.GetNumTargets())
        ]

    def _leave(self, debugger: int) -> None:
        """Look no more at the targets of a debugger, which is destroyed when this returns.

        At the end of its process, LLDB calls this while it holds the lock of its list of debuggers.  A thread that
        looks at targets may wait for that lock: LLDB takes it to report the progress of reading symbols.
        """
        self._debuggers.pop(debugger, None)
        is_alone = self._looking.acquire(timeout=_PATIENCE)
        if is_alone:
            self._looking.release()
        if not self._debuggers:
            self._end(is_alone)

    def _end(self, waits: bool) -> None:
        """End the thread when the last debugger is destroyed: LLDB then ends, and its objects with it.

        :param waits: return when the thread has ended.
        """
        self._ended.set()
        if self._listener is not None:
            self._listener.AddEvent(lldb.SBEvent(0, ""))  # it may be waiting for one
        if waits and self._thread is not None:
            self._thread.join(_PATIENCE)
        self._listener = self._thread = None
        self._heard.clear()

    def _listen(self, listener: lldb.SBListener, ended: threading.Event) -> None:
        while not ended.is_set():
            # A new one, since an event keeps a target alive.  Clear() would empty it for all listeners, which share it.
            event = lldb.SBEvent()
            if self._comes(listener, ended, event):
                self._drain(listener, event)
                for nap in _NAPS:
                    self.look()
                    if listener.PeekAtNextEvent(event) or ended.wait(nap):
                        break
            del event
            self.look()

    def _comes(self, listener: lldb.SBListener, ended: threading.Event, event: lldb.SBEvent) -> bool:
        """Wait for an event and take it; return whether there was one."""
        if not self.is_awake:
            return bool(listener.WaitForEvent(_SECONDS, event))
        ended.wait(_AWAKE)
        return bool(listener.GetNextEvent(event))

    def _drain(self, listener: lldb.SBListener, event: lldb.SBEvent) -> None:
        """Take all events, the first of which has been taken: only the fact that there are some counts."""
        while True:
            if lldb.SBTarget.EventIsTargetEvent(event):
                number = lldb.SBTarget.GetTargetFromEvent(event).GetGloballyUniqueID()
                self._changes[number] = self._changes.get(number, 0) + 1
                if event.GetType() == lldb.SBTarget.eBroadcastBitModulesUnloaded:
                    self._examined[number] = 0  # modules have moved in LLDB's list
            if not listener.GetNextEvent(event):
                return

    def _look_at(self, target: lldb.SBTarget) -> None:
        number = target.GetGloballyUniqueID()
        if number not in self._heard and self._listener is not None:
            self._heard.add(number)
            self._listener.StartListeningForEvents(target.GetBroadcaster(), _CHANGES)
        # `exec` changes the program, and LLDB sends no event for what has gone.
        program = target.GetModuleAtIndex(0).GetFileSpec().fullpath or ""
        process = target.GetProcess()
        now = _Seen(process.GetUniqueID(), target.GetNumModules(), program, self._changes.get(number, 0))
        before = self._seen.get(number)
        if now == before:
            return
        if before is not None and (now.program != before.program or now.modules < before.modules):
            self._examined[number] = 0
        is_new = before is None or before.process != now.process
        if not (self.concerns_all or self._concerned(target, number, now.modules)) or self._wake(target, is_new):
            self._seen[number] = now

    def _concerned(self, target: lldb.SBTarget, number: int, count: int) -> bool:
        """Return whether SFrame concerns a target.

        Of the modules, only the paths are asked for: LLDB may still be filling them in, in another thread.
        """
        from lldb_plugin.lifecycle.sframe_files import concerns  # it takes as long to load as all the rest

        for index in range(self._examined.get(number, 0), count):
            module = target.GetModuleAtIndex(index)
            if concerns(module.GetFileSpec().fullpath or ""):
                return True
            self._examined[number] = index + 1
        return False

    def _wake(self, target: lldb.SBTarget, is_new: bool) -> bool:
        """Do what a target needs; return whether nothing is left to do."""
        if target.GetDebugger().GetID() not in self._debuggers:
            return True  # it is being destroyed, and LLDB may be about to end
        self.is_awake = True
        return self._prepare(target, is_new)
