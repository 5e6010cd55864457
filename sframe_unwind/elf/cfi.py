"""The DWARF CFI of a linked or relocatable ELF file: ``.eh_frame`` and ``.debug_frame``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sframe_unwind.address import Range, RangeMap
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.records import CfiFunction, Fde, Records
from sframe_unwind.elf._reader import Reader
from sframe_unwind.elf.relocation import Relocations
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.errors import FormatError

EH_FRAME, EH_FRAME_HDR, DEBUG_FRAME = ".eh_frame", ".eh_frame_hdr", ".debug_frame"


class CfiProblem(NamedTuple):
    """A function with an FDE that cannot be decoded."""

    start: int
    end: int
    """End address (exclusive)."""
    why: str
    code: bytes
    """Its instructions."""


class FileCfi:
    """All CFI of a file for code in the file.  If several FDEs describe the same addresses, the first one counts.

    :param layout: the addresses of the sections.
    :raises FileError: a relocation is of an unknown type, or a compressed section is implausibly large.
    :raises FormatError: a section is not a sequence of CFI records.
    """

    def __init__(self, reader: Reader, arch: Arch, layout: Layout, relocations: Relocations) -> None:
        self.problems: list[FormatError] = []
        """The errors in FDEs with addresses that cannot be decoded."""
        self._layout = layout
        found: dict[Range, Fde] = {}
        for name in (EH_FRAME, DEBUG_FRAME):
            for section in reader.sections:
                if section.name == name and section.has_contents:
                    address = layout.addresses[section.number]
                    self._add(found, Records(relocations.contents(section), address, arch, name == DEBUG_FRAME))
        self._fdes = RangeMap((start, end, fde) for (start, end), fde in found.items())

    def _add(self, found: dict[Range, Fde], records: Records) -> None:
        for _, fde in records.fdes(True, self.problems):
            # Linkers keep the FDEs of functions that they discard.
            limit = self._layout.code_end(fde.start)
            if limit is not None and fde.start < fde.end:
                found.setdefault((fde.start, min(fde.end, limit)), fde)

    def ranges(self) -> list[Range]:
        """Return the address range of each FDE, sorted."""
        return [(start, end) for start, end, _ in self._fdes]

    def all_functions(self) -> Iterator[CfiFunction | CfiProblem]:
        """Yield all decoded FDEs, sorted by address."""
        return (_decoded(*entry) for entry in self._fdes)

    def functions(self, start: int, end: int) -> list[CfiFunction | CfiProblem]:
        """Return the decoded FDEs for addresses in ``[start, end)``."""
        return [_decoded(*entry) for entry in self._fdes.overlapping(start, end)]


def _decoded(start: int, end: int, fde: Fde) -> CfiFunction | CfiProblem:
    try:
        function = fde.decode()
    except FormatError as error:
        return CfiProblem(start, end, str(error), fde.code)
    return function if function.end == end else function._replace(end=end)
