"""DWARF CFI of an ELF file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from io import BytesIO

from elftools.dwarf.callframe import FDE, CallFrameInfo
from elftools.dwarf.structs import DWARFStructs
from elftools.elf.elffile import ELFFile

from sframe_unwind.arch import Arch
from sframe_unwind.dwarf.cfi import CfiFunction, Expression, Row, decode, to_rule
from sframe_unwind.dwarf.expression import UnsupportedExpressionError, reads
from sframe_unwind.elf.relocation import Relocations
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.unwind_rule import UnwindRule

EH_FRAME, DEBUG_FRAME = ".eh_frame", ".debug_frame"

_BEYOND = 1 << 64
"""Behind all addresses."""


class Cfi:
    """All CFI of a file, ``.eh_frame`` and ``.debug_frame``, for code that is in the file.

    :param layout: where the sections of the file lie, which makes a difference in an object file.
    :raises FileError: a relocation of it is not known.
    """

    def __init__(self, elf: ELFFile, arch: Arch, layout: Layout | None = None) -> None:
        layout = layout or Layout(elf)
        self._arch = arch
        self._structs = DWARFStructs(little_endian=elf.little_endian, dwarf_format=32, address_size=8)
        self._layout = layout
        relocations = Relocations(elf, layout.addresses)
        self._found: dict[tuple[int, int], FDE] = {}
        numbered = list(enumerate(elf.iter_sections()))
        for name in (EH_FRAME, DEBUG_FRAME):
            for number, section in numbered:
                if section.name == name and section["sh_type"] != "SHT_NOBITS":
                    contents = relocations.relocated(number, section) or section.data()
                    self._add(contents, layout.addresses[number], name == EH_FRAME)
        self._ranges = sorted(self._found)
        self._functions: dict[tuple[int, int], CfiFunction] = {}

    def _add(self, contents: bytes, address: int, eh_frame: bool) -> None:
        # Not pyelftools' own way to these sections: it reads, and relocates, all debugging information as well.
        info = CallFrameInfo(BytesIO(contents), len(contents), address, self._structs, eh_frame)
        for entry in info.get_entries():
            if isinstance(entry, FDE) and entry["address_range"]:
                start = entry["initial_location"]
                # Linkers leave behind what describes functions that they discarded.
                limit = self._layout.code_end(start)
                if limit is not None:
                    self._found.setdefault((start, min(start + entry["address_range"], limit)), entry)

    def ranges(self) -> list[tuple[int, int]]:
        """Return start and end address of each FDE, in order."""
        return list(self._ranges)

    def function_at(self, pc: int) -> CfiFunction | None:
        """Return the rows of the FDE that contains an address.

        :raises FormatError: an instruction of it is not known.
        """
        return next(self.functions(pc, pc + 1), None)

    def functions(self, start: int, end: int) -> Iterator[CfiFunction]:
        """Yield the rows of each FDE that describes some of a range of addresses.

        :raises FormatError: an instruction of one is not known.
        """
        at = max(bisect_right(self._ranges, (start, _BEYOND)) - 1, 0)
        for key in self._ranges[at : bisect_left(self._ranges, (end,))]:
            if key[1] > start:
                if key not in self._functions:
                    self._functions[key] = decode(self._found[key], self._arch)
                yield self._functions[key]

    def changes(self, function: CfiFunction, low: int, high: int) -> set[int]:
        """Return the addresses at which what an FDE says changes.

        These are its rows'; and where one is computed from the address, as linkers write it for a PLT, those between
        ``low`` and ``high`` at which the result changes.
        """
        found = set(function.starts)
        for start, end, row in zip(function.starts, (*function.starts[1:], function.end), function.rows):
            if self.is_computed_from_pc(row):
                previous = None
                for pc in range(max(start, low), min(end, high)):
                    try:
                        rule: UnwindRule | str = self.rule(row, pc)
                    except UnsupportedExpressionError as error:
                        rule = str(error)
                    if rule != previous:
                        found.add(pc)
                    previous = rule
        return found

    def is_computed_from_pc(self, row: Row) -> bool:
        """Return whether what a row says depends on the address."""
        return any(
            isinstance(source, Expression) and reads(self._structs, source.code, self._arch.pc) for source in row
        )

    def rule(self, row: Row, pc: int) -> UnwindRule:
        """Return the rule that a row amounts to at an address.

        :raises NotAPlaceError: SFrame has no words for it.
        """
        return to_rule(self._structs, self._arch, row, pc)
