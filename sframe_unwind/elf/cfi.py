"""The DWARF CFI of a linked or relocatable ELF file: ``.eh_frame`` and ``.debug_frame``."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from sframe_unwind.address import Extents, Range
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.index import Index
from sframe_unwind.cfi.records import CfiFunction, Fde, Records
from sframe_unwind.elf.contents import Reader
from sframe_unwind.elf.relocation import Relocations
from sframe_unwind.elf.rewritten import BOLT_ORIGINAL
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.errors import FormatError
from sframe_unwind.named_tuple import NamedTuple

EH_FRAME, EH_FRAME_HDR, DEBUG_FRAME = ".eh_frame", ".eh_frame_hdr", ".debug_frame"
DEBUG_FRAMES = (DEBUG_FRAME, ".zdebug_frame")
"""The names of ``.debug_frame``; GNU tools before 2.26 give it the second one when they compress it."""


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

    In a file that BOLT has rewritten, only those count that ``.eh_frame_hdr`` names: BOLT keeps the FDEs of the linker,
    also of the functions that it has rewritten, and writes FDEs for functions that it did not rewrite in the end.

    :param layout: the addresses of the sections.
    :raises FileError: a relocation is of an unknown type, or a compressed section is implausibly large.
    :raises FormatError: a section is not a sequence of CFI records.
    """

    def __init__(self, reader: Reader, arch: Arch, layout: Layout, relocations: Relocations) -> None:
        self.problems: list[FormatError] = []
        """Errors in FDEs with addresses that cannot be decoded."""
        self._layout = layout
        self._records: list[Records] = []
        self._offsets, self._sections = array("Q"), array("L")
        """Of each FDE: where it is in its section, and which one that is."""
        self._extents = Extents(self._found(reader, arch, relocations))
        self._last: tuple[int, CfiFunction | CfiProblem] | None = None
        """Number of the FDE that was decoded last, and the result: most are asked for several times in a row."""

    def _found(self, reader: Reader, arch: Arch, relocations: Relocations) -> Iterator[Range]:
        """Yield the extents of the FDEs that count, and note where these are."""
        seen: set[Range] = set()
        for names in ((EH_FRAME,), DEBUG_FRAMES):
            for section in reader.sections:
                if section.name in names and section.has_contents:
                    address = self._layout.addresses[section.number]
                    records = Records(relocations.contents(section), address, arch, names == DEBUG_FRAMES)
                    self._records.append(records)
                    index = _index(reader, arch, self._layout) if names != DEBUG_FRAMES else None
                    for offset, extent in self._extents_of(records, index):
                        if extent not in seen:
                            seen.add(extent)
                            self._offsets.append(offset)
                            self._sections.append(len(self._records) - 1)
                            yield extent

    def _extents_of(self, records: Records, index: Index | None) -> Iterator[tuple[int, Range]]:
        for offset, fde in records.fdes(True, self.problems):
            if index is not None and not _names(index, fde.start, records.address + offset):
                continue
            # Linkers keep the FDEs of functions that they discard.
            limit = self._layout.code_end(fde.start)
            if limit is not None and fde.start < fde.end:
                yield offset, (fde.start, min(fde.end, limit))

    def ranges(self) -> list[Range]:
        """Return the address range of each FDE, sorted."""
        return list(self._extents)

    def all_functions(self) -> Iterator[CfiFunction | CfiProblem]:
        """Yield all decoded FDEs, sorted by address."""
        return map(self._function, range(len(self._extents)))

    def functions(self, start: int, end: int) -> list[CfiFunction | CfiProblem]:
        """Return the decoded FDEs for addresses in ``[start, end)``."""
        return list(map(self._function, self._extents.overlapping(start, end)))

    def fdes(self, start: int, end: int) -> list[Fde]:
        """Return the FDEs for addresses in ``[start, end)``, which have not been decoded."""
        return list(map(self._fde, self._extents.overlapping(start, end)))

    def _function(self, number: int) -> CfiFunction | CfiProblem:
        if self._last is None or self._last[0] != number:
            self._last = number, _decoded(self._fde(number))
        return self._last[1]

    def _fde(self, number: int) -> Fde:
        """Return an FDE, which ends where its code section ends."""
        at = self._extents.order[number]
        fde = self._records[self._sections[at]].fde(self._offsets[at])
        size = self._extents.sizes[number]
        return fde if fde.end == fde.start + size else fde._replace(end=fde.start + size)


def _index(reader: Reader, arch: Arch, layout: Layout) -> Index | None:
    """Return ``.eh_frame_hdr`` of a file that BOLT has rewritten; ``None``: it is another file, or has no such table.

    :raises FormatError: the table is malformed.
    """
    sections = {section.name: section for section in reader.sections if section.has_contents}
    if BOLT_ORIGINAL + EH_FRAME not in sections or EH_FRAME_HDR not in sections:
        return None
    section = sections[EH_FRAME_HDR]
    index = Index(reader.contents(section), layout.addresses[section.number], arch.byteorder)
    return index if index.searchable else None


def _names(index: Index, start: int, fde: int) -> bool:
    """Return whether the index names an FDE for the start of its function."""
    entry = index.find(start)
    return entry is not None and entry.fde == fde


def _decoded(fde: Fde) -> CfiFunction | CfiProblem:
    try:
        return fde.decode()
    except FormatError as error:
        return CfiProblem(fde.start, fde.end, str(error), fde.code)
