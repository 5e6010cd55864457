"""Lookup in the DWARF CFI of one loaded object."""

from __future__ import annotations

from functools import cached_property
from typing import Callable

from sframe_unwind.cfi.section import CfiMatch, CfiSection, PlacedCfi

OpenCfi = Callable[[], "CfiSection | None"]


class ObjectCfi:
    """The CFI of one object: ``.eh_frame`` in memory, and for other addresses ``.debug_frame`` in a file.

    :param eh_frame: opens ``.eh_frame``.
    :param debug_frame: opens ``.debug_frame``.
    """

    def __init__(self, eh_frame: OpenCfi, debug_frame: Callable[[], PlacedCfi | None]) -> None:
        self._open_eh_frame = eh_frame
        self._open_debug_frame = debug_frame
        self._known: dict[int, CfiMatch | None] = {}

    def at(self, pc: int) -> CfiMatch | None:
        """Return the CFI for a lookup address in memory; ``None``: no FDE contains it.

        :raises SFrameError: the CFI is malformed, cannot be read, or has no form as an
            :class:`sframe_unwind.unwind_rule.UnwindRule`.
        """
        if pc not in self._known:
            found = self._eh_frame.match(pc) if self._eh_frame else None
            if found is None and self._debug_frame is not None:
                found = self._debug_frame.match(pc)
            self._known[pc] = found
        return self._known[pc]

    @property
    def exists(self) -> bool:
        """Whether there is any CFI.

        :raises SFrameError: it cannot be read.
        """
        return self._eh_frame is not None or self._debug_frame is not None

    @cached_property
    def _eh_frame(self) -> CfiSection | None:
        return self._open_eh_frame()

    @cached_property
    def _debug_frame(self) -> PlacedCfi | None:
        return self._open_debug_frame()
