"""Reads DWARF debug information with pyelftools, as far as it is asked for.

Each call into pyelftools is inside :func:`_translated`, and no other code is.  Sections are read in place: the debug
information of a large program has gigabytes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, NamedTuple

from elftools.dwarf.aranges import ARanges
from elftools.dwarf.die import DIE
from elftools.dwarf.dwarfinfo import DebugSectionDescriptor, DwarfConfig, DWARFInfo
from elftools.dwarf.ranges import BaseAddressEntry

from sframe_unwind.address import Range
from sframe_unwind.elf import ElfBinary, ElfSection, PathLike, opened, translated
from sframe_unwind.elf.constants import SHF_COMPRESSED
from sframe_unwind.elf.reader import FileReader
from sframe_unwind.errors import FormatError
from sframe_unwind.source.line_header import check_names

_SECTIONS = (
    *("info", "aranges", "abbrev", "frame", "str", "loc", "ranges", "line", "pubtypes", "pubnames", "addr"),
    *("str_offsets", "line_str", "loclists", "rnglists", "sup", "types"),
)
"""What pyelftools takes, each as the argument ``debug_NAME_sec``."""
_MAX_PROGRAM = 1 << 21
"""Bytes of a line number program.  pyelftools makes some hundred bytes of each; sqlite3.c, one of the longest files
that there are, has a program of 500,000 bytes."""
_SIBLING = "DW_AT_sibling"
_LOCAL = ("DW_FORM_ref1", "DW_FORM_ref2", "DW_FORM_ref4", "DW_FORM_ref8", "DW_FORM_ref_udata")
"""Forms of a reference within a unit."""


def _translated() -> AbstractContextManager[None]:
    return translated("debug information that cannot be read")


class LineRow(NamedTuple):
    """A row of a line number program."""

    address: int
    file: int
    line: int
    is_statement: bool
    ends_sequence: bool


class LineProgram(NamedTuple):
    """A line number program, decoded."""

    version: int
    directories: list[bytes]
    files: list[tuple[bytes, int]]
    """Name, and number of the directory."""
    rows: list[LineRow]


class Entry:
    """A debugging information entry."""

    def __init__(self, die: Any) -> None:
        self._die = die
        self.offset: int = die.offset
        self.size: int = die.size
        self.tag: str | None = die.tag
        self.has_children: bool = die.has_children

    @property
    def is_null(self) -> bool:
        """Whether it ends a list of children."""
        return self.tag is None

    def has(self, name: str) -> bool:
        """Return whether the entry has an attribute."""
        return name in self._die.attributes

    def number(self, name: str) -> int:
        """Return the number that an attribute is; 0: there is none."""
        return self._number(name) or 0

    def _number(self, name: str) -> int | None:
        found = self._die.attributes.get(name)
        return found.value if found is not None and isinstance(found.value, int) else None

    def text(self, name: str) -> bytes:
        """Return the string that an attribute is; empty: there is none."""
        found = self._die.attributes.get(name)
        return found.value if found is not None and isinstance(found.value, bytes) else b""

    def referred(self, name: str) -> Entry:
        """Return the entry that an attribute refers to.

        :raises FileError: there is none.
        """
        with _translated():
            return Entry(self._die.get_DIE_from_attribute(name))

    def behind_children(self) -> int:
        """Return the offset behind the children, as the attribute ``DW_AT_sibling`` gives it; 0: it is not there."""
        sibling = self._die.attributes.get(_SIBLING)
        if sibling is None or sibling.form not in _LOCAL or not isinstance(sibling.raw_value, int):
            return 0
        return int(self._die.cu.cu_offset + sibling.raw_value)

    def ranges(self) -> list[Range]:
        """Return start and end address (exclusive) of the code, listed empty ranges included.

        :raises FileError: the list of ranges cannot be read.
        """
        if self.has("DW_AT_ranges"):
            return list(self._listed(self.number("DW_AT_ranges")))
        low, high = self._number("DW_AT_low_pc"), self._number("DW_AT_high_pc")
        if low is None or high is None:
            return []
        is_address = str(self._die.attributes["DW_AT_high_pc"].form).startswith("DW_FORM_addr")
        end = high if is_address else low + high
        return [(low, end)] if low < end else []

    def _listed(self, offset: int) -> Iterator[Range]:
        with _translated():
            top = Entry(self._die.cu.get_top_DIE())
            entries = self._die.dwarfinfo.range_lists().get_range_list_at_offset(offset, self._die.cu)
        base = top.number("DW_AT_low_pc")
        for one in entries:
            if isinstance(one, BaseAddressEntry):
                base = one.base_address
            elif one.is_absolute:
                yield one.begin_offset, one.end_offset
            else:
                yield base + one.begin_offset, base + one.end_offset


class Unit:
    """A compilation unit."""

    def __init__(self, unit: Any, stream: Any) -> None:
        self._unit = unit
        self._stream = stream
        self.offset: int = unit.cu_offset

    def top(self) -> Entry:
        """Return the entry of the unit itself.

        :raises FileError: it cannot be read.
        """
        with _translated():
            return Entry(self._unit.get_top_DIE())

    def entry(self, offset: int) -> Entry:
        """Return the entry at an offset of the section.

        :raises FileError: it cannot be read.
        """
        with _translated():
            return Entry(DIE(self._unit, self._stream, offset))

    def line_program(self, offset: int) -> LineProgram:
        """Return the line number program of the unit.

        :param offset: of the program in its section, in bytes.
        :raises FileError: it cannot be read.
        :raises FormatError: it is malformed or too long.
        """
        info = self._unit.dwarfinfo
        if info.debug_line_sec is None:
            raise FormatError("a line number program without its section", offset, ".debug_line")
        check_names(info.debug_line_sec.stream, offset, info.config.little_endian)
        with _translated():
            found = info.line_program_for_CU(self._unit)
            size = found.program_end_offset - found.program_start_offset
        if size > _MAX_PROGRAM:
            raise FormatError(f"a line number program of {size:,} bytes", offset, ".debug_line")
        with _translated():
            header = found.header
            files = [(entry.get("name"), entry.get("dir_index")) for entry in header["file_entry"]]
            directories = list(header["include_directory"])
            version, entries = header["version"], found.get_entries()
        states = (entry.state for entry in entries if entry.state is not None)
        return LineProgram(
            version,
            [one if isinstance(one, bytes) else b"" for one in directories],
            [(name if isinstance(name, bytes) else b"", number or 0) for name, number in files],
            [LineRow(one.address, one.file, one.line, bool(one.is_stmt), bool(one.end_sequence)) for one in states],
        )


class Dwarf:
    """The debug information of a file.

    :raises FileError: the file cannot be read.
    """

    def __init__(self, path: PathLike) -> None:
        reader = FileReader(path)
        with opened(path) as binary:
            sections = {section.name: section for section in binary.sections if section.has_contents}
            # GNU tools compressed them so before 2014.
            prefix = ".zdebug_" if ".zdebug_info" in sections else ".debug_"
            found = {name: sections.get(prefix + name) for name in _SECTIONS}
            described = {
                f"debug_{name}_sec": section and _descriptor(binary, section, reader) for name, section in found.items()
            }
            with _translated():
                config = DwarfConfig(binary.byteorder == "little", binary.machine, 8)
                # Without links: this project looks for separate debug files by itself, and only where its user wants.
                self._info = DWARFInfo(config=config, eh_frame_sec=None, gnu_debugaltlink_sec=None, **described)

    def address_ranges(self) -> list[tuple[int, int, int]]:
        """Return start, end (exclusive) and offset of the unit of each entry of ``.debug_aranges``.

        :raises FileError: they cannot be read.
        """
        with _translated():
            found: ARanges | None = self._info.get_aranges()
            entries = found.entries if found is not None else []
        return [(one.begin_addr, one.begin_addr + one.length, one.info_offset) for one in entries if one.length]

    def unit(self, offset: int) -> Unit:
        """Return the unit at an offset of ``.debug_info``.

        :raises FileError: there is none.
        """
        with _translated():
            return self._unit(self._info.get_CU_at(offset))

    def units(self) -> Iterator[Unit]:
        """Yield all units.

        :raises FileError: one cannot be read; those before it have been yielded.
        """
        units = self._info.iter_CUs()
        while True:
            with _translated():
                unit = next(units, None)
            if unit is None:
                return
            yield self._unit(unit)

    def _unit(self, unit: Any) -> Unit:
        return Unit(unit, self._info.debug_info_sec.stream)


def _descriptor(binary: ElfBinary, section: ElfSection, reader: FileReader) -> DebugSectionDescriptor:
    stream: BinaryIO
    if section.flags & SHF_COMPRESSED or section.name.startswith(".z"):
        data = binary.decompressed(section)
        stream, size = io.BytesIO(data), len(data)
    else:
        size = max(min(section.size, binary.size - section.offset), 0)
        stream = reader.part(section.offset, size)
    return DebugSectionDescriptor(stream, section.name, section.offset, size, section.address)
