"""Reads the names that run-time compilers write to ``/tmp/perf-PID.map``, one line for each function.

The format is that of perf (``tools/perf/Documentation/jit-interface.txt`` of Linux): start address and size in
hexadecimal digits, and the name.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from functools import cached_property

from sframe_unwind.elf.reader import open_file
from sframe_unwind.errors import FileError
from sframe_unwind.process.ptrace import status

_MAX_SIZE = 1 << 27
"""Maximum number of bytes that are read of the file: a line for each of two million functions."""


class PerfMap:
    """The names of run-time code of a process; there are none if it writes no file.

    :param process: id of the process.
    :param root: its root folder.
    """

    def __init__(self, process: int, root: str) -> None:
        self._process = process
        self._root = root

    def name(self, pc: int) -> str:
        """Return the name of the function at an address; empty: there is none."""
        starts, functions = self._functions
        at = bisect_right(starts, pc) - 1
        return functions[at][1] if at >= 0 and pc < functions[at][0] else ""

    @cached_property
    def _functions(self) -> tuple[list[int], list[tuple[int, str]]]:
        """Start of each function, and end address (exclusive) and name."""
        found: dict[int, tuple[int, str]] = {}
        for line in self._text().splitlines():
            start, _, rest = line.partition(" ")
            size, _, name = rest.partition(" ")
            try:
                address, length = int(start, 16), int(size, 16)
            except ValueError:
                continue  # a compiler that is writing the line
            found[address] = address + length, name  # of two for one address, the later one is newer
        starts = sorted(found)
        return starts, [found[start] for start in starts]

    def _text(self) -> str:
        """Return the text of the file, if the process's user or root owns it: anybody can write to ``/tmp``."""
        known = status(self._process, self._process)
        own = known.get("NSpid", str(self._process)).split()[-1]  # the process may have a PID namespace
        owners = {0, *map(int, known.get("Uid", "").split())}
        try:
            with open_file(f"{self._root}/tmp/perf-{own}.map") as stream:
                found = os.fstat(stream.fileno())
                if found.st_uid not in owners:
                    return ""
                return stream.read(min(found.st_size, _MAX_SIZE)).decode("utf-8", "backslashreplace")
        except (OSError, FileError):
            return ""
