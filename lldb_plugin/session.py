"""What the plugin knows in one LLDB: the mode, the modules of each process, and the targets it is plugged into."""

from __future__ import annotations

import sys

import lldb

from lldb_plugin.memory import reader
from lldb_plugin.native import NativeStack
from lldb_plugin.process import Process, arch_of, list_modules, signature
from sframe_unwind.errors import SFrameError
from sframe_unwind.report.terminal import printable
from sframe_unwind.unwind.modules import Modules

ALWAYS, FALLBACK, OFF = "always", "fallback", "off"
MODES = (ALWAYS, FALLBACK, OFF)

_PROCESSES = 8
"""So many processes' modules are kept; who has more at once waits a little longer for the first backtrace."""


class Session:
    """The state of the plugin."""

    def __init__(self) -> None:
        self.mode = ALWAYS
        self._modules: dict[int, tuple[object, Modules]] = {}
        self._native: dict[tuple[int, int], tuple[int, NativeStack]] = {}
        self._reported: set[str] = set()
        self.planning = False
        """Whether a provider is at work this moment."""

    def process(self, process: lldb.SBProcess) -> Process:
        """Return a stopped process in the core's terms.

        :raises SFrameError: see :func:`lldb_plugin.process.arch_of`.
        """
        target = process.GetTarget()
        arch = arch_of(target)
        number, state = process.GetUniqueID(), signature(target)
        known = self._modules.pop(number, None)
        if known is None or known[0] != state:
            known = state, list_modules(target, reader(process), arch, self.report)
        self._modules[number] = known
        for oldest in list(self._modules)[:-_PROCESSES]:
            del self._modules[oldest]
        return Process(process, arch, known[1])

    def keep(self, thread: lldb.SBThread, native: NativeStack) -> None:
        """Keep what LLDB's own frames of a thread were: with a provider plugged in there is no other way to them."""
        process = thread.GetProcess()
        number, stop = process.GetUniqueID(), process.GetStopID()
        for key, (earlier, _) in list(self._native.items()):
            if key[0] == number and earlier != stop:
                self._native.pop(key, None)
        self._native[number, thread.GetThreadID()] = stop, native

    def native(self, thread: lldb.SBThread) -> NativeStack:
        """Return LLDB's own frames of a stopped thread.

        :raises SFrameError: the thread has no frames, or see :meth:`process`.
        """
        process = thread.GetProcess()
        if not thread.GetNumFrames():  # makes the provider, where there is one
            raise SFrameError("the thread has no frames")
        stop, native = self._native.get((process.GetUniqueID(), thread.GetThreadID()), (None, None))
        if native is None or stop != process.GetStopID() or self.mode == OFF:
            native = NativeStack(self.process(process), thread)
        return native

    def report(self, line: str) -> None:
        """Show one line to the user, once."""
        if line not in self._reported:
            self._reported.add(line)
            print(f"sframe: {printable(line)}", file=sys.stderr)


SESSION = Session()
