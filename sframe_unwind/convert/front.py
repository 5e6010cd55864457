"""Makes room for more program headers directly after the file header.

Tools that rewrite a file (GNU strip and objcopy, eu-strip, llvm-strip) put the program headers after the file header,
or keep only bytes that belong to a section.  If the program headers of a file are elsewhere, these tools break it: the
result cannot be loaded, and their exit status is 0.

The sections that follow the program headers are small: the interpreter's name, notes, hash tables.  Only program
headers and entries of the dynamic section refer to them.  As many of them as necessary move to the new segment.
Their order and their distances stay the same.
"""

from __future__ import annotations

from sframe_unwind.address import ByteOrder
from sframe_unwind.convert.writing import Chunk
from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.build_id import find_build_id
from sframe_unwind.elf.constants import (
    DT_GNU_HASH,
    DT_HASH,
    DT_SYMTAB,
    PT_DYNAMIC,
    PT_GNU_PROPERTY,
    PT_INTERP,
    PT_LOAD,
    PT_NOTE,
    PT_PHDR,
    SHF_ALLOC,
    SHT_DYNSYM,
    SHT_GNU_HASH,
    SHT_HASH,
    SHT_NOBITS,
    SHT_NOTE,
    SHT_PROGBITS,
    SHT_SYMTAB,
)
from sframe_unwind.elf.records import (
    DynamicEntry,
    FileHeader,
    ProgramHeader,
    Record,
    SectionHeader,
    Symbol,
    decoded,
    encoded,
    layout,
)
from sframe_unwind.errors import FileError
from sframe_unwind.named_tuple import NamedTuple

_TAGS = {SHT_GNU_HASH: DT_GNU_HASH, SHT_HASH: DT_HASH, SHT_DYNSYM: DT_SYMTAB}
"""Sections to which one entry of the dynamic section refers."""
MOVED_ALIGNMENT = 64
"""Sections move by a multiple of this, so that they stay aligned."""


class Records(NamedTuple):
    """A linked file and its headers."""

    file: ElfBinary
    header: FileHeader
    program: list[ProgramHeader]
    sections: list[SectionHeader]

    @property
    def byteorder(self) -> ByteOrder:
        """The byte order of the file."""
        return self.file.byteorder


class Move(NamedTuple):
    """The numbers of sections, and the distance in bytes by which they move, in memory and in the file."""

    numbers: frozenset[int]
    delta: int
    offset_delta: int


class Front:
    """The sections at the front of a file that make room for program headers.

    :ivar start: offset of the first section.
    :ivar data: the bytes of the sections that move to the new segment.
    """

    def __init__(
        self, records: Records, numbers: list[int], staying: list[int], limit: int, dropped: int | None
    ) -> None:
        """Apply a choice of :func:`choose`.

        :param numbers: the sections that move, in the order of their addresses.
        :param staying: those of them that move only to the end of the program headers, not to the new segment.
        :param limit: offset where the program headers will end.
        :param dropped: number of a redundant program header, which is removed.
        """
        self._records = records
        self._staying = staying
        self._dropped = dropped
        self._limit = limit
        sections = records.sections
        self._leaving = [number for number in numbers if number not in staying]
        self.start, self.address, self.data = 0, 0, b""
        if numbers:
            first, last = sections[numbers[0]], sections[numbers[-1]]
            self.start, self.address = first.offset, first.address
            size = last.offset + last.size - first.offset
            self.data = records.file.read(first.offset, size) if self._leaving else b""

    def moves(self, address: int, offset: int) -> list[Move]:
        """Return the moves that put the sections of :attr:`data` at an address and an offset."""
        moves = [Move(frozenset(self._leaving), address - self.address, offset - self.start)]
        if self._staying:
            first = self._records.sections[self._staying[0]]
            delta = _aligned(self._limit, 8) - first.offset
            moves.append(Move(frozenset(self._staying), delta, delta))
        return moves

    def program(self, moves: list[Move]) -> list[ProgramHeader]:
        """Return the program headers with the new places."""
        sections, kept = self._records.sections, []
        for number, header in enumerate(self._records.program):
            if number == self._dropped:
                continue
            if header.type not in (PT_LOAD, PT_PHDR):
                for move in moves:
                    if any(_covers(header, sections[index]) for index in move.numbers):
                        header = header._replace(
                            offset=header.offset + move.offset_delta,
                            address=header.address + move.delta,
                            physical=header.physical + move.delta,
                        )
                        break
            kept.append(header)
        return kept

    def sections(self, moves: list[Move]) -> list[SectionHeader]:
        """Return the section headers with the new places."""
        moved = list(self._records.sections)
        for move in moves:
            for number in move.numbers:
                section = moved[number]
                moved[number] = section._replace(
                    address=section.address + move.delta, offset=section.offset + move.offset_delta
                )
        return moved

    def chunks(self, moves: list[Move]) -> list[Chunk]:
        """Return the changes in the file besides headers: sections that stay in front, and addresses of sections."""
        file, order = self._records.file, self._records.byteorder
        before = self._records.sections
        changed = []
        for move in moves:
            if self._staying and move.numbers == frozenset(self._staying):
                for number in self._staying:
                    section = before[number]
                    contents = file.read(section.offset, section.size)
                    changed.append(Chunk(section.offset + move.offset_delta, contents))
        deltas = {number: move.delta for move in moves for number in move.numbers}
        by_tag = {_TAGS[before[number].type]: number for number in deltas if before[number].type in _TAGS}
        for offset, entry in _dynamic(self._records):
            if entry.tag in by_tag:
                value = entry.value + deltas[by_tag[entry.tag]]
                changed.append(Chunk(offset, encoded([entry._replace(value=value)], order)))
        for offset, symbol in _symbols(self._records, SHT_SYMTAB):
            if symbol.shndx in deltas:
                value = symbol.value + deltas[symbol.shndx]
                changed.append(Chunk(offset, encoded([symbol._replace(value=value)], order)))
        return changed

    @property
    def freed(self) -> int:
        """Number of program headers that are removed."""
        return int(self._dropped is not None)


def choose(records: Records, added: int) -> Front | None:
    """Choose the sections that make room; ``None``: there may be unknown references to the sections at the front.

    :param added: number of additional program headers.
    """
    header, program = records.header, records.program
    size = layout(ProgramHeader, records.byteorder).size
    loads = [one for one in program if one.type == PT_LOAD]
    end = header.phoff + len(program) * size
    if header.phoff != layout(FileHeader, records.byteorder).size or loads[0].offset or loads[0].file_size < end:
        return None
    dropped = _duplicate_note(program)
    limit = end + (added - (dropped is not None)) * size
    if not _may_reach(loads, limit):
        return None
    numbers = _prefix(records, end, limit)
    if not numbers:
        return Front(records, [], [], limit, dropped)  # there is room already
    numbers = _prefix(records, end, max(limit, _end_of_notes(records, numbers)))
    if not all(_may_move(records, number) for number in numbers):
        return None
    if any(symbol.shndx in numbers for _, symbol in _symbols(records, SHT_DYNSYM)):
        return None
    last = records.sections[numbers[-1]]
    following = min(
        (one.offset for one in records.sections if one.flags & SHF_ALLOC and one.offset > last.offset),
        default=loads[0].file_size,
    )
    return Front(records, numbers, _with_build_id(records, numbers, following - _aligned(limit, 8)), limit, dropped)


def _end_of_notes(records: Records, numbers: list[int]) -> int:
    """Return the end of the segments of notes that contain some of these sections: such a segment moves as a whole."""
    return max(
        (
            header.offset + header.file_size
            for header in records.program
            if header.type in (PT_NOTE, PT_GNU_PROPERTY)
            and any(_covers(header, records.sections[number]) for number in numbers)
        ),
        default=0,
    )


def _may_reach(loads: list[ProgramHeader], limit: int) -> bool:
    """Return whether the first segment reaches to an offset, or can be made longer up to there."""
    first, *others = loads
    if limit <= first.file_size:
        return True
    is_free = all(limit <= one.offset and first.address + limit <= one.address for one in others)
    return first.file_size == first.memory_size and is_free


def leading(records: Records) -> Front | None:
    """Return the sections after the program headers that may move; ``None``: the first one may not."""
    size = layout(ProgramHeader, records.byteorder).size
    numbers = _prefix(records, records.header.phoff + len(records.program) * size, records.file.size)
    count = next((at for at, number in enumerate(numbers) if not _may_move(records, number)), len(numbers))
    return Front(records, numbers[:count], [], 0, None) if count else None


def _prefix(records: Records, end: int, limit: int) -> list[int]:
    """Return the numbers of the sections that begin between two offsets."""
    sections = records.sections
    found = [
        number
        for number, section in enumerate(sections)
        if section.flags & SHF_ALLOC and section.type != SHT_NOBITS and section.size and end <= section.offset < limit
    ]
    return sorted(found, key=lambda number: sections[number].offset)


def _may_move(records: Records, number: int) -> bool:
    """Return whether only headers and dynamic entries refer to a section."""
    section = records.sections[number]
    if section.alignment > MOVED_ALIGNMENT or section.offset + section.size > records.file.size:
        return False
    if section.type in _TAGS:
        wanted = DynamicEntry(_TAGS[section.type], section.address)
        return [entry for _, entry in _dynamic(records) if entry.tag == wanted.tag] == [wanted]
    if section.type == SHT_NOTE:
        kinds = {PT_NOTE, PT_GNU_PROPERTY}
    elif section.type == SHT_PROGBITS:
        kinds = {PT_INTERP}
    else:
        return False
    return any(header.type in kinds and _covers(header, section) for header in records.program)


def _with_build_id(records: Records, numbers: list[int], room: int) -> list[int]:
    """Return the notes with the build ID, if there is room for them after the program headers.

    Kernels write the first page of a loaded file to core files, which tell the build ID by it.
    """
    for header in records.program:
        if header.type != PT_NOTE or not find_build_id(_bytes(records, header), records.byteorder):
            continue
        notes = [number for number in numbers if _covers(header, records.sections[number])]
        others = [one for one in records.program if one.type == PT_GNU_PROPERTY and one.address == header.address]
        if notes and header.file_size <= room and not others:
            return notes
    return []


def _duplicate_note(program: list[ProgramHeader]) -> int | None:
    """Return the number of the note segment that repeats PT_GNU_PROPERTY, which is read instead."""
    places = {(one.address, one.file_size) for one in program if one.type == PT_GNU_PROPERTY}
    found = (
        number for number, one in enumerate(program) if one.type == PT_NOTE and (one.address, one.file_size) in places
    )
    return next(found, None)


def _covers(header: ProgramHeader, section: SectionHeader) -> bool:
    return header.address <= section.address and section.address + section.size <= header.address + header.memory_size


def _dynamic(records: Records) -> list[tuple[int, DynamicEntry]]:
    """Return offset and contents of the entries of the dynamic section."""
    segments = (header for header in records.program if header.type == PT_DYNAMIC)
    return next((_entries(records, one.offset, one.file_size, DynamicEntry) for one in segments), [])


def _symbols(records: Records, kind: int) -> list[tuple[int, Symbol]]:
    """Return offset and contents of the symbols in the first table of a kind."""
    tables = (section for section in records.sections if section.type == kind)
    return next((_entries(records, table.offset, table.size, Symbol) for table in tables), [])


def _entries(records: Records, offset: int, size: int, kind: type[Record]) -> list[tuple[int, Record]]:
    """Return offset and contents of the records in a range of the file.

    :param size: size of the range, in bytes.
    :raises FileError: the file ends before the range does.
    """
    each = layout(kind, records.byteorder).size
    whole = size // each * each
    data = records.file.read(offset, whole)
    if len(data) < whole:
        raise FileError(f"truncated: {whole:#x} bytes of headers at {offset:#x}, the file has {records.file.size:#x}")
    entries = decoded(kind, data, records.byteorder)
    return [(offset + number * each, entry) for number, entry in enumerate(entries)]


def _bytes(records: Records, header: ProgramHeader) -> bytes:
    return records.file.read(header.offset, header.file_size)


def _aligned(offset: int, alignment: int) -> int:
    return offset + -offset % alignment
