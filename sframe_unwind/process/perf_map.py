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


class NamedRanges:
    """Ranges of addresses with names.

    :param ranges: end address (exclusive) and name of each range, by its start.
    """

    def __init__(self, ranges: dict[int, tuple[int, str]]) -> None:
        self._starts = sorted(ranges)
        self._ranges = ranges

    def name(self, address: int) -> str:
        """Return the name of the range with an address; empty: there is none."""
        at = bisect_right(self._starts, address) - 1
        end, name = self._ranges[self._starts[at]] if at >= 0 else (0, "")
        return name if address < end else ""


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
        return self._functions.name(pc)

    @cached_property
    def _functions(self) -> NamedRanges:
        known = status(self._process, self._process)
        own = known.get("NSpid", str(self._process)).split()[-1]  # the process may have a PID namespace
        owners = {0, *map(int, known.get("Uid", "").split())}
        return NamedRanges(read_map(read_owned(f"{self._root}/tmp/perf-{own}.map", owners)))


def read_owned(path: str, owners: set[int]) -> bytes:
    """Return the contents of a file, if one of some users owns it: anybody can write to ``/tmp``.  Else none."""
    try:
        with open_file(path) as stream:
            found = os.fstat(stream.fileno())
            return stream.read(min(found.st_size, _MAX_SIZE)) if found.st_uid in owners else b""
    except (OSError, FileError):
        return b""


def read_map(data: bytes) -> dict[int, tuple[int, str]]:
    """Return end address (exclusive) and name of each function by its start."""
    found: dict[int, tuple[int, str]] = {}
    for line in data.decode("utf-8", "backslashreplace").splitlines():
        start, _, rest = line.partition(" ")
        size, _, name = rest.partition(" ")
        try:
            address, length = int(start, 16), int(size, 16)
        except ValueError:
            continue  # a compiler that is writing the line
        found[address] = address + length, name  # of two for one address, the later one is newer
    return found
