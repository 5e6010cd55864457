"""The settings, the modules of each process, and the frames that LLDB does not show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lldb

from lldb_plugin.frames.kept_frames import KeptFrames, moment_of
from lldb_plugin.interface.telling import Report
from lldb_plugin.process.differences import Differences
from lldb_plugin.process.loaded_modules import LoadedModules
from lldb_plugin.process.process import Process, arch_of
from sframe_unwind.debugger.settings import OFF, Settings

if TYPE_CHECKING:
    from lldb_plugin.frames.native import NativeStack

_PROCESSES = 8
"""Number of processes whose modules are kept; with more, the first backtrace of each takes a little longer."""


class Session:
    """The data about processes, of all debuggers, while the plugin is awake.

    :param differences: compares modules with their CFI.
    :param report: shows one line to the user.
    """

    def __init__(self, differences: Differences, report: Report) -> None:
        self._differences = differences
        self._report = report
        self.settings = Settings()
        self.deciding: set[int] = set()
        """Threads of LLDB that are asking for frames at this moment."""
        self._known: dict[int, LoadedModules] = {}
        self.kept = KeptFrames()

    def process(self, process: lldb.SBProcess) -> Process:
        """Return a stopped process in the core's terms.

        :raises SFrameError: see :func:`lldb_plugin.process.process.arch_of`.
        """
        known = self.modules(process)
        return Process(
            process=process,
            arch=known.arch,
            modules=known.modules,
            shared=known.shared,
            precedence=known.precedence,
            native_cfi=known.native_cfi,
            kernel=known.kernel,
        )

    def modules(self, process: lldb.SBProcess) -> LoadedModules:
        """Return the modules of a stopped process, up to date.

        :raises SFrameError: see :func:`lldb_plugin.process.process.arch_of`.
        """
        number = process.GetUniqueID()
        known = self._known.pop(number, None)
        if known is None:
            target = process.GetTarget()
            known = LoadedModules(
                target=target,
                process=process,
                arch=arch_of(target),
                differences=self._differences,
                report=self._report,
                generates=self.settings.generate,
            )
        else:
            known.refresh()
        self._known[number] = known
        for oldest in list(self._known)[:-_PROCESSES]:
            del self._known[oldest]
        return known

    def leaves_frames_alone(self, process: lldb.SBProcess) -> bool:
        """Return whether it is certain that SFrame changes no stack of a process; this waits for no lock."""
        known = self._known.get(process.GetUniqueID())
        return known is not None and known.is_up_to_date() and not known.can_change_stacks(self.settings)

    def is_off(self) -> bool:
        """Return whether the mode is ``off``."""
        return self.settings.mode == OFF

    def forget_modules(self) -> None:
        """Drop the modules of all processes; they are opened again at the next use."""
        self._known.clear()

    def replaced(self, thread: lldb.SBThread) -> lldb.SBFrameList | None:
        """Return LLDB's own frames of a stopped thread if LLDB shows others; otherwise ``None``."""
        thread.GetFrameAtIndex(0)  # makes LLDB list the frames if it has not
        return None if self.settings.mode == OFF else self.kept.get(moment_of(thread))

    def native(self, thread: lldb.SBThread, limit: int | None = None) -> NativeStack:
        """Return LLDB's own frames of a stopped thread.

        :param limit: maximum number of frames; those that share their registers count once.
        :raises SFrameError: the thread has no frames, or see :meth:`process`.
        """
        from lldb_plugin.frames.native import NativeStack

        replaced = self.replaced(thread)
        return NativeStack(self.process(thread.GetProcess()), thread if replaced is None else replaced, limit)
