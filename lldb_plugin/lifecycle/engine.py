"""The part of the plugin that unwinds.  It is imported when SFrame concerns a target, or a command is run."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import lldb

from lldb_plugin.interface.interpreter import OwnInterpreter
from lldb_plugin.interface.telling import Reporter
from lldb_plugin.lifecycle.commanding import Commanding
from lldb_plugin.lifecycle.invalidate import Invalidation
from lldb_plugin.lifecycle.new_modules import NewModules
from lldb_plugin.lifecycle.renewal import Renewals
from lldb_plugin.lifecycle.session import Session
from lldb_plugin.lifecycle.shown_frames import ShownFrames
from lldb_plugin.lifecycle.stack_changes import StackChanges
from lldb_plugin.lifecycle.stop_hooks import StopHooks
from lldb_plugin.lifecycle.targets import Targets
from lldb_plugin.lifecycle.watching import Watcher
from lldb_plugin.process.differences import Differences
from lldb_plugin.version import TAKES_FRAMES
from sframe_unwind.debugger.settings import Settings

if TYPE_CHECKING:
    from lldb_plugin.lifecycle.questions import Questions


class Engine:
    """The data about processes, and the parts that give LLDB frames.

    :param watcher: looks at the targets of all debuggers.
    :param commanding: knows the commands that wait for frames.
    :param stack_changes: keeps LLDB from showing threads again.
    """

    def __init__(self, watcher: Watcher, commanding: Commanding, stack_changes: StackChanges) -> None:
        self.report = Reporter().report
        """Shows one line to the user, once."""
        self._watcher = watcher
        differences = Differences(self.report)
        self.session = Session(differences, self.report)
        self.hooks = StopHooks(OwnInterpreter())
        self._invalidation = Invalidation()
        self._renewals = Renewals()
        self._loading = threading.Lock()
        self._questions: Questions | None = None
        self._targets = Targets(
            session=self.session,
            differences=differences,
            hooks=self.hooks,
            stack_changes=stack_changes,
            provider_for=self._provider_for,
            report=self.report,
        )
        self._shown = ShownFrames(self.session, self._invalidation, self._targets.plugged, self.report)
        self.new_modules = NewModules(
            session=self.session,
            differences=differences,
            targets=self._targets,
            hooks=self.hooks,
            shown=self._shown,
            commanding=commanding,
        )

    def _provider_for(self, target: lldb.SBTarget, number: int) -> type:
        """Return the provider's class for a target.

        What it needs is loaded when the first target gets it: in programs whose CFI is right, no target does.
        """
        from lldb_plugin.lifecycle.provider import for_target  # its base class exists since LLDB 22
        from lldb_plugin.lifecycle.questions import Questions

        with self._loading:
            if self._questions is None:
                self._questions = Questions(
                    session=self.session,
                    hooks=self.hooks,
                    renewals=self._renewals,
                    invalidation=self._invalidation,
                    report=self.report,
                )
        return for_target(target, number, self._questions)

    def at_stop(self, context: lldb.SBExecutionContext) -> None:
        """Do what a stop needs before a command shows it.

        The provider is registered or removed, and what could not be done when LLDB asked for frames is completed.
        """
        target = context.GetTarget()
        self._targets.fit(target, has_frames=True)
        self._renewals.now(target)
        self._shown.fetch(context.GetThread())
        if self.session.is_off() or self.session.leaves_frames_alone(target.GetProcess()):
            self.hooks.need_no_more(target)
        else:
            self.hooks.need(target)

    def apply(self, settings: Settings) -> None:
        """Change the settings in all targets of all debuggers; the frames that are selected stay selected."""
        # Until the provider is registered, which another thread may be about to do, LLDB shows its own frames.
        with self._watcher.alone():
            self._apply(settings)

    def _apply(self, settings: Settings) -> None:
        if settings.generate != self.session.settings.generate:
            self.session.forget_modules()
        self.session.settings = settings
        if not TAKES_FRAMES:
            return
        # It is loaded now: a program that a client launches can stop in 100 ms.
        from lldb_plugin.lifecycle import provider  # noqa: F401

        self._watcher.is_awake = True
        self._watcher.concerns_all = settings.concerns_all
        known = self._watcher.targets()
        with contextlib.ExitStack() as selections:
            for target in known:
                selections.enter_context(self._shown.selections_kept(target))
            for target in known:
                self._targets.fit(target, has_frames=target.GetProcess().IsValid())
                if self.session.is_off() and not self._targets.is_plugged(target):
                    self.hooks.need_no_more(target)
            self._shown.forget_frames()
