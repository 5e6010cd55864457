"""What the plugin knows in one LLDB: the mode, the modules of each process, and whose frames LLDB shows."""

from __future__ import annotations

import sys

import lldb

from lldb_plugin.agreement import SharedRules
from lldb_plugin.memory import reader
from lldb_plugin.modules import LoadedModules, list_modules
from lldb_plugin.native import NativeStack
from lldb_plugin.process import Process, arch_of
from sframe_unwind.arch import Arch
from sframe_unwind.debugger.settings import ALWAYS, FALLBACK, OFF, Settings
from sframe_unwind.report.terminal import printable
from sframe_unwind.unwind.modules import Modules

_PROCESSES = 8
"""So many processes' modules are kept; with more at once the first backtrace of each takes a little longer."""


class _Known:
    """What is known of one process for as long as its modules stay the same."""

    def __init__(self, target: lldb.SBTarget, process: lldb.SBProcess, arch: Arch) -> None:
        self.loaded = LoadedModules(target)
        self.arch = arch
        self.read = reader(process)
        self.modules: Modules = list_modules(target, self.read, arch, SESSION.report, SESSION.settings.generate)
        self.shared = {mode: SharedRules(self.modules, prefers_cfi=mode == FALLBACK) for mode in (ALWAYS, FALLBACK)}


class Session:
    """The state of the plugin."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.deciding: set[int] = set()
        """Threads of LLDB's that ask at this moment whose frames to show."""
        self._known: dict[int, _Known] = {}
        self._native: dict[int, dict[int, NativeStack]] = {}
        self._reported: set[str] = set()

    def process(self, process: lldb.SBProcess) -> Process:
        """Return a stopped process in the core's terms.

        :raises SFrameError: see :func:`lldb_plugin.process.arch_of`.
        """
        target = process.GetTarget()
        number = process.GetUniqueID()
        known = self._known.pop(number, None)
        if known is None or not known.loaded.are_still(target):
            known = _Known(target, process, arch_of(target))
        self._known[number] = known
        for oldest in list(self._known)[:-_PROCESSES]:
            del self._known[oldest]
            self._native.pop(oldest, None)
        if known.modules.look_again():
            for rules in known.shared.values():
                rules.clear()
        return Process(process, known.arch, known.modules, known.shared)

    def forget_modules(self) -> None:
        """Open the modules of all processes anew at the next use."""
        self._known.clear()

    def set_native(self, thread: lldb.SBThread, native: NativeStack | None) -> None:
        """Note what LLDB's own frames of a thread are, as long as LLDB shows others.

        With a provider in force there is no other way to them.  This is called whenever LLDB makes its list of the
        thread's frames, so that the note is as old as the list.

        :param native: ``None``: LLDB shows its own frames.
        """
        number = thread.GetProcess().GetUniqueID()
        if native is not None:
            self._native.setdefault(number, {})[thread.GetThreadID()] = native
        elif number in self._native:
            self._native[number].pop(thread.GetThreadID(), None)

    def replaced(self, thread: lldb.SBThread) -> NativeStack | None:
        """Return LLDB's own frames of a stopped thread where LLDB shows others, else ``None``."""
        thread.GetFrameAtIndex(0)  # makes LLDB's list of frames where there is none
        if self.settings.mode == OFF:
            return None
        return self._native.get(thread.GetProcess().GetUniqueID(), {}).get(thread.GetThreadID())

    def native(self, thread: lldb.SBThread, limit: int | None = None) -> NativeStack:
        """Return LLDB's own frames of a stopped thread.

        :param limit: how many are wanted at the most, those that share their registers counted once.
        :raises SFrameError: the thread has no frames, or see :meth:`process`.
        """
        return self.replaced(thread) or NativeStack(self.process(thread.GetProcess()), thread, limit)

    def report(self, line: str) -> None:
        """Show one line to the user, once."""
        if line not in self._reported:
            self._reported.add(line)
            print(f"sframe: {printable(line)}", file=sys.stderr)


SESSION = Session()
