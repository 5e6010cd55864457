"""The DWARF CFI of one loaded object, asked for single addresses."""

from __future__ import annotations

from functools import cached_property
from typing import Callable

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.cfi.section import CfiMatch, CfiSection

OpenCfi = Callable[[], "CfiSection | None"]


class ObjectCfi:
    """``.eh_frame`` in memory, and where that says nothing, ``.debug_frame`` of a file.

    :param eh_frame: opens the one.
    :param debug_frame: opens the other, which is in the terms of the file.
    :param bias: what to add to an address in the file to get the one in memory.
    """

    def __init__(self, eh_frame: OpenCfi, debug_frame: OpenCfi, bias: int) -> None:
        self._open_eh_frame = eh_frame
        self._open_debug_frame = debug_frame
        self._bias = bias
        self._known: dict[int, CfiMatch | None] = {}

    def at(self, pc: int) -> CfiMatch | None:
        """Return what CFI says of an address, ``None`` where no FDE contains it.

        :raises SFrameError: the CFI is malformed, cannot be read, or is more than a rule can express.
        """
        if pc not in self._known:
            found = self._eh_frame.match(pc) if self._eh_frame else None
            if found is None and self._debug_frame is not None:
                found = self._debug_frame.match(pc - self._bias & ADDRESS_MASK)
            self._known[pc] = found
        return self._known[pc]

    @cached_property
    def _eh_frame(self) -> CfiSection | None:
        return self._open_eh_frame()

    @cached_property
    def _debug_frame(self) -> CfiSection | None:
        return self._open_debug_frame()
