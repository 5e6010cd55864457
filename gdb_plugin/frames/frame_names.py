"""Names in ``bt`` for code that the process registered with libunwind, and for the entry code of a Linux kernel.

GDB takes the names of frames from a frame filter.  Filters make GDB slower, so the filter exists only while there is
such code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gdb
from gdb.FrameDecorator import FrameDecorator

from gdb_plugin.interface.texts import text
from gdb_plugin.process.process import Process
from sframe_unwind.kernel.entry_code import shown_name


class _NamedFrame(FrameDecorator):
    """A frame with the registered name of its code."""

    def __init__(self, decorated: Any, name: str) -> None:
        super().__init__(decorated)
        self._name = name

    def function(self) -> str:
        """Return the name."""
        return self._name


class FrameNames:
    """The frame filter.

    :param filters: the dictionary in which GDB looks for filters.
    """

    def __init__(self, filters: dict[str, Any]) -> None:
        self.name = "sframe"
        self.enabled = True
        self.priority = 100
        self._filters = filters
        self._process: Process | None = None

    def follow(self, process: Process | None) -> None:
        """Name the frames of a process from now on; ``None``: name no frames."""
        run_time = process.run_time if process is not None else None
        has_names = run_time is not None and run_time.has_registered()
        self._process = process if has_names or (process is not None and process.kernel is not None) else None
        if self._process is None:
            self._filters.pop(self.name, None)
        else:
            self._filters[self.name] = self

    def filter(self, frames: Iterator[Any]) -> Iterator[Any]:
        """Return the frames; those of registered code have their names."""
        return map(self._named, frames)

    def _named(self, decorated: Any) -> Any:
        frame = decorated.inferior_frame()
        if self._process is not None and self._process.kernel is not None and frame.type() == gdb.SIGTRAMP_FRAME:
            place = self._process.kernel.places.get(frame.pc() - 1)
            return decorated if place is None else _NamedFrame(decorated, shown_name(place, text(frame.name)))
        if self._process is None or frame.type() != gdb.NORMAL_FRAME or text(frame.name):
            return decorated
        # A return address can be after the last byte of a procedure.
        pc = frame.pc()
        name = self._process.run_time_name(pc) or self._process.run_time_name(pc - 1)
        # If a filter has no name, GDB prints three question marks in place of two.
        return _NamedFrame(decorated, name or "??")
