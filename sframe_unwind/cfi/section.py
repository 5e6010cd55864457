"""The call frame information of one module: finds the FDE that contains an address, and decodes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable, Optional

from sframe_unwind.address import ADDRESS_MASK, Range, find_range
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.index import Index
from sframe_unwind.cfi.records import CfiFunction, Fde, Records
from sframe_unwind.errors import FormatError
from sframe_unwind.memory import Data
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import UnwindRule

_KEPT = 4096
"""Maximum number of functions whose rows are kept."""


class SectionData(NamedTuple):
    """A section at its address in memory."""

    address: int
    data: Data


class CfiMatch(NamedTuple):
    """The rule of CFI for one address."""

    rule: UnwindRule
    signal: bool
    """The function is a signal trampoline: its caller was interrupted, not left by a call."""


FindCfi = Callable[[int], Optional[CfiMatch]]
"""``(lookup address)``: returns the CFI for the address, or ``None``; raises :class:`SFrameError`."""


class CfiSection:
    """``.eh_frame`` or ``.debug_frame``.

    :param frames: the section.
    :param index: ``.eh_frame_hdr``; ``None``: the module has none, and the records are read once, and sorted.
    :param arch: architecture of the code that it describes.
    :param debug_frame: it is ``.debug_frame``.
    :param size_known: ``frames`` is exactly the section.  ``False``: only the program headers describe it, and its end
        is not known.
    """

    def __init__(
        self,
        frames: SectionData,
        index: SectionData | None,
        arch: Arch,
        debug_frame: bool = False,
        size_known: bool = True,
    ) -> None:
        self.records = Records(frames.data, frames.address, arch, debug_frame)
        self.problems: list[FormatError] = []
        """The errors in single FDEs, which are skipped.  Complete once all FDEs were read."""
        self._arch = arch
        self._frames = frames
        self._index = index
        self._size_known = size_known
        self._opened_index: Index | None = None
        self._found = 0, 0, 0
        """Start, end and offset of the FDE that was found last by the index; it is the answer for this range."""
        self._found_fde: Fde | None = None
        self._extents: list[tuple[int, int, int]] | None = None
        self._functions: dict[int, CfiFunction] = {}

    @property
    def address(self) -> int:
        """Address at which the section is loaded."""
        return self._frames.address

    def covers(self, pc: int) -> bool:
        """Return whether some FDE contains an address.

        :raises FormatError: the part of the CFI that was read is malformed.
        :raises MemoryReadError: it cannot be read.
        """
        return self.find(pc) is not None

    def find(self, pc: int) -> int | None:
        """Return the section offset of the FDE that contains an address; ``None``: no FDE does.

        :raises FormatError: the part of the CFI that was read is malformed.
        :raises MemoryReadError: it cannot be read.
        """
        index = self._searchable_index()
        if index is not None:
            start, end, known = self._found
            return known if start <= pc < end else self._search(index, pc)
        extent = find_range(self.extents(), pc)
        return None if extent is None else extent[2]

    def _searchable_index(self) -> Index | None:
        """Return the index; ``None``: there is none that can be searched.

        :raises FormatError: its first bytes are malformed.
        """
        if self._index is not None and self._opened_index is None:
            self._opened_index = Index(self._index.data, self._index.address, self._arch.byteorder)
        return self._opened_index if self._opened_index is not None and self._opened_index.searchable else None

    def _search(self, index: Index, pc: int) -> int | None:
        """Search for the FDE as :meth:`find` does, without its cache."""
        entry = index.find(pc)
        if entry is None:
            return None
        offset = entry.fde - self._frames.address
        fde = self.records.fde(offset)
        if not fde.start <= pc < fde.end:
            return None
        self._found = max(entry.start, fde.start), min(entry.end, fde.end), offset
        self._found_fde = fde
        return offset

    def extents(self) -> list[tuple[int, int, int]]:
        """Return start and end address of each FDE, in order, and its section offset.

        :raises FormatError: a record does not end within the section.
        :raises MemoryReadError: it cannot be read.
        """
        if self._extents is None:
            end = None if self._size_known else self._indexed_end()
            fdes = self.records.fdes(self._size_known or end is not None, self.problems, end)
            self._extents = sorted((fde.start, fde.end, offset) for offset, fde in fdes)
        return self._extents

    def _indexed_end(self) -> int | None:
        """Return the section offset after the last FDE of the index; ``None``: no index can be searched.

        A section need not end with a record of length 0, and other data can follow: in Debian 13's dynamic loader for
        AArch64, a note.
        """
        index = self._searchable_index()
        last = None if index is None else index.last_fde()
        return None if last is None else self.records.end_of(last - self._frames.address)

    def function(self, offset: int) -> CfiFunction:
        """Decode the FDE at a section offset.

        :raises UnsupportedError: it is of an unknown kind, or has an unknown instruction.
        :raises FormatError: it is malformed.
        :raises MemoryReadError: it cannot be read.
        """
        known = self._functions.get(offset)
        if known is None:
            if len(self._functions) >= _KEPT:
                self._functions.clear()
            found = self._found_fde if offset == self._found[2] else None
            fde = found or self.records.fde(offset)
            try:
                known = self._functions[offset] = fde.decode()
            except FormatError as error:
                raise type(error)(f"CFI of the function at {fde.start:#x}: {error}") from error
        return known

    def function_at(self, pc: int) -> CfiFunction | None:
        """Decode the FDE that contains an address; ``None``: no FDE does.  See :meth:`function` for exceptions."""
        offset = self.find(pc)
        return None if offset is None else self.function(offset)

    def match(self, pc: int) -> CfiMatch | None:
        """Return the rule for an address; ``None``: no FDE contains it.  Raises the exceptions of :meth:`function`, and

        :raises UnsupportedExpressionError: a rule cannot express CFA or return address.
        """
        function = self.function_at(pc)
        return None if function is None else CfiMatch(function.rule_at(pc, self._arch), function.cie.signal)

    def row_end(self, pc: int) -> int | None:
        """Return the end address of the row for an address; ``None``: no FDE contains it.

        See :meth:`function` for exceptions.
        """
        function = self.function_at(pc)
        return None if function is None else function.row_end(pc)


class PlacedCfi(NamedTuple):
    """CFI of a file, for a module that is loaded at another address than the file has."""

    section: CfiSection
    bias: int
    """Address in the process minus address in the file."""

    def covers(self, pc: int) -> bool:
        """Return whether some FDE contains an address of the process; see :meth:`CfiSection.covers` for exceptions."""
        return self.find(pc) is not None

    def find(self, pc: int) -> int | None:
        """Return the offset of the FDE that contains an address of the process; see :meth:`CfiSection.find`."""
        return self.section.find(pc - self.bias & ADDRESS_MASK)

    def extents(self) -> Iterator[Range]:
        """Yield the ranges of the FDEs in the process; see :meth:`CfiSection.extents` for exceptions."""
        return ((start + self.bias, end + self.bias) for start, end, _ in self.section.extents())

    def match(self, pc: int) -> CfiMatch | None:
        """Return the rule for an address of the process; see :meth:`CfiSection.match`."""
        return self.section.match(pc - self.bias & ADDRESS_MASK)

    def row_end(self, pc: int) -> int | None:
        """Return the end, in the process, of the row for an address of the process; see :meth:`CfiSection.row_end`."""
        end = self.section.row_end(pc - self.bias & ADDRESS_MASK)
        return None if end is None else end + self.bias & ADDRESS_MASK
