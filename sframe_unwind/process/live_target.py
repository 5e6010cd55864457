"""A running process as a source of stacks."""

from __future__ import annotations

from typing import Callable

from sframe_unwind.errors import counted
from sframe_unwind.process.base import Thread
from sframe_unwind.process.elf_file import ElfFile
from sframe_unwind.process.files import Files
from sframe_unwind.process.live import Live
from sframe_unwind.process.loader import Loader
from sframe_unwind.process.objects import Objects
from sframe_unwind.process.perf_map import PerfMap
from sframe_unwind.process.stacks import walk
from sframe_unwind.process.target import UnwoundThread


class LiveTarget:
    """A :class:`sframe_unwind.process.target.Target`: the threads in their state when this object was created.

    :param files: finds the mapped files.
    :param given: the executable; its path may have another file now.
    :param report: called with one line for each message to the user.
    :raises ProcessError: ``ptrace`` is not permitted, or the process has ended.
    """

    def __init__(self, live: Live, files: Files, given: ElfFile, report: Callable[[str], None]) -> None:
        self._live = live
        self._copy = live.take()
        self.arch = live.arch
        self.threads = self._copy.threads
        hung = [thread for thread in self.threads if thread.not_stopped]
        self.missing: list[str] = []
        """The threads that could not be stopped, in one line; empty: all were stopped."""
        if hung:
            number = counted(len(hung), "thread")
            self.missing.append(f"process {live.id}: {number} not stopped: in uninterruptible sleep (state D)")
        self.read = live.memory.read
        mappings = self._copy.mappings
        objects = Loader(live.arch, live.auxv, live.memory, files, given).objects(mappings.files(live.id))
        names = PerfMap(live.id, f"{live.folder}/root")
        self.code = Objects(
            arch=live.arch,
            objects=objects,
            read=live.memory.read,
            report=report,
            is_executable=mappings.is_executable,
            name=names.name,
        )

    def unwind(self, thread: Thread) -> UnwoundThread:
        """Return the frames of a thread, from the copy of its stack.

        If the walk reads memory that was not copied, for example from a signal stack, stop the thread and walk again.
        """
        if not thread.registers:
            return UnwoundThread(thread, (), "its registers are not known: the kernel does not tell them")
        self._copy.memory.missed = False
        unwound = walk(thread, self.arch, self.code, self._copy.memory.read)
        if self._copy.memory.missed and not thread.not_stopped:
            with self._live.stopped(thread.id) as again:
                if again is not None:
                    return walk(again, self.arch, self.code, self.read)
        return unwound
