"""The part of the plugin that unwinds.  It is imported when there is something to unwind, or a command is run."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Callable

import gdb
from gdb.unwinder import register_unwinder

from gdb_plugin.frames.frame_names import FrameNames
from gdb_plugin.frames.unwinder import SFrameUnwinder
from gdb_plugin.interface.reporting import Reporter
from gdb_plugin.interface.selection import forget_frames, selection_kept
from gdb_plugin.lifecycle.returning import CheckReturn
from gdb_plugin.lifecycle.session import Session
from gdb_plugin.version import FAILS_AT_VIEWED_FRAMES
from sframe_unwind import __version__

if TYPE_CHECKING:
    from sframe_unwind.debugger.settings import Settings


class Engine:
    """The unwinder, and what it knows about the inferiors.

    :param files_freed: called when GDB may have freed a file.
    """

    def __init__(self, settings: Settings, files_freed: Callable[[], None]) -> None:
        report = Reporter()
        names = FrameNames(gdb.frame_filters)
        self.session = Session(report, names, files_freed, self._define_hooks)
        self.unwinder = SFrameUnwinder(self.session, names, report)
        self._report = report
        self._has_greeted = self._has_hooks = False
        self._set(settings)

    def apply(self, settings: Settings) -> None:
        """Apply the user's settings from now on, also to frames that are already unwound."""
        self._set(settings)
        forget_frames()

    def _set(self, settings: Settings) -> None:
        self.session.generate(settings.generate)
        self.unwinder.settings = settings

    def wake(self, wanted: bool, by_user: bool) -> None:
        """Unwind frames from now on, or leave them to GDB.

        :param by_user: see :meth:`gdb_plugin.lifecycle.waking.Plugin._update`.
        """
        self.unwinder.names.enabled = wanted
        self.session.watch(wanted, by_user)
        if not wanted:
            gdb.frame_unwinders.remove(self.unwinder)
            return
        with selection_kept() if by_user else nullcontext():
            register_unwinder(None, self.unwinder, replace=True)
        if by_user:
            self._define_hooks()
            self.session.look_for_kernel()
        if not self._has_greeted:
            self._has_greeted = True
            self._report.greet(f"sframe-unwind {__version__}: the program has SFrame; see 'help sframe'")

    def _define_hooks(self) -> None:
        """Define the hooks of GDB's commands, once.

        A GDB command must not be run while a program runs: GDB 13 then ends the command that lets the program run.
        """
        if self._has_hooks:
            return
        self._has_hooks = True
        CheckReturn(self.unwinder, self.session)
        if FAILS_AT_VIEWED_FRAMES:
            from gdb_plugin.lifecycle.viewing import Rest

            Rest(self.unwinder)
