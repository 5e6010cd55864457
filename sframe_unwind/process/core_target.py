"""A core file as a source of stacks."""

from __future__ import annotations

from typing import Callable

from sframe_unwind.address import lookup_address
from sframe_unwind.process.base import Thread
from sframe_unwind.process.core_file import Core
from sframe_unwind.process.elf_file import ElfFile
from sframe_unwind.process.files import Files
from sframe_unwind.process.loader import Loader
from sframe_unwind.process.objects import Objects
from sframe_unwind.process.stacks import walk
from sframe_unwind.process.target import UnwoundThread
from sframe_unwind.unwind import frame_pointer
from sframe_unwind.unwind.walk import Frame


class CoreTarget:
    """A :class:`sframe_unwind.process.target.Target`.

    :param files: finds the mapped files.
    :param given: the executable that the user named; ``None``: search for it.
    :param report: called with one line for each message to the user.
    """

    def __init__(self, core: Core, files: Files, given: ElfFile | None, report: Callable[[str], None]) -> None:
        self.arch = core.arch
        self.threads = core.threads
        self.read = core.memory.read
        loader = Loader(core.arch, core.auxv, core.memory, files, given)
        objects = loader.objects(core.mappings)
        self.code = Objects(core.arch, objects, core.memory.read, report, core.executable.contains)
        self._executable = loader.executable.path if loader.executable else "unknown"
        self._guessed: list[Frame] = []
        self.missing: list[str] = []
        """The missing parts of the core file and its files, one line each; empty: nothing is missing."""
        if core.truncated:
            self.missing.append(f"{core.path}: {core.truncated}: stacks end where memory is missing")
        if loader.executable is None or loader.executable.file is None:
            self.missing.append(f"{core.path}: executable not found: {self._executable} (--exe FILE names it)")

    def unwind(self, thread: Thread) -> UnwoundThread:
        """Return the frames of a thread."""
        unwound = walk(thread, self.arch, self.code, self.read)
        self._guessed += (one for one in unwound.frames if one.unwinder in ("", frame_pointer.NAME))
        return unwound

    def lost_files(self) -> list[str]:
        """Return the paths of the files, except the executable, that were needed for a frame and not found."""
        found = (self.code.find(lookup_address(one.pc, one.interrupted)) for one in self._guessed)
        return sorted({one.name for one in found if one is not None and one.file is None} - {self._executable})
