"""The names of generated code: from ``/tmp/perf-PID.map``, and from jitdump files."""

from __future__ import annotations

import os
from collections.abc import Callable

from sframe_unwind.perf.jitdump import FILE, read_jitdump
from sframe_unwind.perf.mappings import Mapping
from sframe_unwind.process.perf_map import NamedRanges, read_map, read_owned


class GeneratedNames:
    """Finds names; the files of a process are read when a name in it is first asked for.

    :param root: the folder below which the paths are; empty: the root of the file system.
    """

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._owners = {0, os.geteuid()}
        """Users whose files are believed: anybody can write to ``/tmp``."""
        self._dumps: dict[int, str] = {}
        self._known: dict[int, Callable[[int], str]] = {}

    def note(self, mapping: Mapping) -> None:
        """Remember the jitdump file that a process has mapped."""
        if FILE.search(mapping.path):
            self._dumps[mapping.pid] = mapping.path
            self._known.pop(mapping.pid, None)

    def name(self, pid: int, address: int) -> str:
        """Return the name of the function at an address; empty: there is none."""
        if pid not in self._known:
            found = read_map(read_owned(f"{self._root}/tmp/perf-{pid}.map", self._owners))
            if pid in self._dumps:
                found.update(read_jitdump(read_owned(self._root + self._dumps[pid], self._owners)))
            self._known[pid] = NamedRanges(found).name
        return self._known[pid](address)
