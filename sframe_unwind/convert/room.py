"""Chooses where a loaded section goes in a copy of a linked file, with the program headers that load it.

There are four places, in the order of preference:

- the segment that an earlier conversion made;
- a new segment at the end, its program headers after the file header (:mod:`sframe_unwind.convert.front`);
- the same, but file header and program headers get a page of their own before the first segment: for executables with
  fixed addresses that have no room in the first segment;
- a new segment at the end with all program headers in it.
"""

from __future__ import annotations

from sframe_unwind.address import ByteOrder
from sframe_unwind.convert.front import MOVED_ALIGNMENT, Records, choose, leading
from sframe_unwind.convert.writing import Chunk
from sframe_unwind.elf.constants import ET_EXEC, PF_R, PN_XNUM, PT_LOAD, PT_PHDR, SHF_ALLOC, SHT_NOBITS, SHT_PROGBITS
from sframe_unwind.elf.records import ProgramHeader, SectionHeader, layout
from sframe_unwind.errors import FileError
from sframe_unwind.named_tuple import NamedTuple

ALIGNMENT = 8
"""Alignment of sections, in bytes."""
_MAX_HOLE = 1 << 32
"""Maximum size of the hole in the copy, in bytes, for variables that exist only in memory; it takes no disk space."""
_MAX_ALIGNMENT = 1 << 24
_LOWEST = 1 << 16
"""The lowest address that Linux lets programs map, by default (vm.mmap_min_addr)."""


class Room(NamedTuple):
    """A place for a loaded section."""

    shift: int
    """Number of bytes by which the contents of the file move back, after a new page."""
    kept: int
    """Number of bytes of the file that stay, apart from the changes in :attr:`chunks`."""
    offset: int
    """Offset of the segment in the file."""
    address: int
    """Address of the segment."""
    section_offset: int
    section_address: int
    alignment: int
    """Alignment of the segment."""
    phoff: int
    """Offset of the program headers."""
    program: list[ProgramHeader]
    """The other program headers: all but those of the new segment and of the section."""
    sections: list[SectionHeader]
    """All section headers of the file, with their new places."""
    headers_section: SectionHeader | None
    """Covers the old file header and program headers that stay in memory; its name is set later."""
    chunks: list[Chunk]
    """The changes in the file besides headers and the new section."""
    survives_strip: bool
    """Whether the file stays loadable when tools rewrite it."""

    def program_headers(self, segment: int, size: int, byteorder: ByteOrder) -> list[ProgramHeader]:
        """Return all program headers.

        :param segment: type of the segment for the section.
        :param size: size of the section in bytes.
        """
        length = self.section_offset + size - self.offset
        load = _read_only(PT_LOAD, self.offset, self.address, length)._replace(alignment=self.alignment)
        own = _read_only(segment, self.section_offset, self.section_address, size)
        headers = list(self.program)
        last = max(number for number, header in enumerate(headers) if header.type == PT_LOAD)
        headers.insert(last + 1, load)  # segments are in the order of their addresses
        headers.append(own)
        return _with_table(headers, self.phoff, len(headers) * layout(ProgramHeader, byteorder).size)


def _read_only(kind: int, offset: int, address: int, size: int) -> ProgramHeader:
    """Return the header of a segment that is only read, and is as large in memory as in the file."""
    return ProgramHeader(
        type=kind,
        flags=PF_R,
        offset=offset,
        address=address,
        physical=address,
        file_size=size,
        memory_size=size,
        alignment=ALIGNMENT,
    )


def _with_table(headers: list[ProgramHeader], offset: int, size: int) -> list[ProgramHeader]:
    """Return program headers with PT_PHDR where the table is, in the first segment that begins before it.

    That segment becomes longer if it ends before the table does; there is room behind it.

    :param offset: offset of the table of program headers.
    :param size: its size in bytes.
    """
    found = (
        number
        for number, one in enumerate(headers)
        if one.type == PT_LOAD and one.offset <= offset < one.offset + one.file_size
    )
    number = next(found, None)
    if number is None:
        return headers  # the table is not loaded
    load = headers[number]
    missing = max(0, offset + size - load.offset - load.file_size)
    headers[number] = load._replace(file_size=load.file_size + missing, memory_size=load.memory_size + missing)
    place = offset - load.offset + load.address
    return [
        one._replace(offset=offset, address=place, physical=place, file_size=size, memory_size=size)
        if one.type == PT_PHDR
        else one
        for one in headers
    ]


def room_for(records: Records, segment: int, name: int | None) -> Room:
    """Return the place for a loaded section.

    :param segment: type of the segment for the section.
    :param name: number of the section with the same name, which is replaced; ``None``: there is none.
    :raises FileError: there is no place.
    """
    loads = [header for header in records.program if header.type == PT_LOAD]
    if not loads:
        raise FileError("no loaded segment")
    count = len(records.program) + 2
    if records.header.phnum == PN_XNUM or count >= PN_XNUM:
        raise FileError(f"{count} program headers, more than a copy can have")
    alignment = max(header.alignment for header in loads)
    if not 0 < alignment <= _MAX_ALIGNMENT or alignment & alignment - 1:
        raise FileError(f"segments with the alignment {alignment:#x}")
    others = [header for header in records.program if header.type != segment]
    found = _again(records, others, name, alignment)
    if found is None:
        records = records._replace(program=others)
        found = _after_the_header(records, alignment) or _before_the_first_segment(records, alignment)
    return found or _at_the_end(records, alignment)


def _again(records: Records, others: list[ProgramHeader], number: int | None, alignment: int) -> Room | None:
    """Return the section's place in a segment that an earlier conversion added; ``None``: there is none."""
    if number is None:
        return None
    section = records.sections[number]
    last = max((one for one in others if one.type == PT_LOAD), key=lambda one: one.address)
    program = [one for one in others if one is not last]
    if not _is_added(records, section, last) or not any(one.type == PT_LOAD for one in program):
        return None
    phoff, offset, kept = records.header.phoff, last.offset, section.offset
    chunks: list[Chunk] = []
    if _is_followed(records, section):
        if last.offset <= phoff < section.offset:
            return None
        kept = records.file.size
        offset = kept + (last.address - kept) % alignment
        chunks.append(Chunk(offset, records.file.read(last.offset, section.offset - last.offset)))
    delta = offset - last.offset
    return Room(
        shift=0,
        kept=kept,
        offset=offset,
        address=last.address,
        section_offset=section.offset + delta,
        section_address=section.address,
        alignment=last.alignment,
        phoff=phoff,
        program=[one._replace(offset=one.offset + delta) if _is_inside(one, last) else one for one in program],
        sections=[
            one._replace(offset=one.offset + delta) if one.is_loaded and last.address <= one.address < last.end else one
            for one in records.sections
        ],
        headers_section=None,
        chunks=chunks,
        survives_strip=not last.offset <= phoff < last.offset + last.file_size,
    )


def _is_added(records: Records, section: SectionHeader, segment: ProgramHeader) -> bool:
    """Return whether the last segment is one that an earlier conversion added for a section at its end."""
    if section.type == SHT_NOBITS or section.offset + section.size > records.file.size:
        return False
    if segment.flags != PF_R or segment.offset > section.offset or segment.address >= section.address + ALIGNMENT:
        return False
    is_last = not any(one.is_loaded and one.address > section.address for one in records.sections)
    is_in_place = section.address - segment.address == section.offset - segment.offset
    return is_last and is_in_place and section.end == segment.end


def _is_followed(records: Records, section: SectionHeader) -> bool:
    """Return whether contents or program headers follow a section; the names of the sections are written anew."""
    names = records.sections[records.header.shstrndx]
    contents = (one for one in records.sections if one.has_contents and one.size and one is not names)
    return any(one.offset > section.offset for one in contents) or records.header.phoff > section.offset


def _is_inside(one: ProgramHeader, segment: ProgramHeader) -> bool:
    """Return whether another program header describes a part of a loaded segment."""
    return one.type != PT_LOAD and one.file_size > 0 and segment.address <= one.address < segment.end


def _after_the_header(records: Records, alignment: int) -> Room | None:
    """Return a place in a new segment at the end of the file; ``None``: there is no room for its program headers."""
    front = choose(records, 2)
    if front is None:
        return None
    offset, address = _end(records, 0, alignment)
    # llvm-objcopy lays a segment out with the alignment of the first section at the same offset.  That would be the
    # interpreter's name or a note, so the moved sections do not begin where the segment does.
    block = (front.address - address - 1) % MOVED_ALIGNMENT + 1 if front.data else 0
    moves = front.moves(address + block, offset + block)
    start = block + len(front.data)
    start += -(offset + start) % ALIGNMENT
    chunks = [*front.chunks(moves), Chunk(offset + block, front.data)]
    return Room(
        shift=0,
        kept=records.file.size,
        offset=offset,
        address=address,
        section_offset=offset + start,
        section_address=address + start,
        alignment=alignment,
        phoff=records.header.phoff,
        program=front.program(moves),
        sections=front.sections(moves),
        headers_section=None,
        chunks=chunks,
        survives_strip=True,
    )


def _before_the_first_segment(records: Records, alignment: int) -> Room | None:
    """Return a place in a new segment at the end of a file that gets a new first page; ``None``: that is not possible.

    Sections also move to the new page: GNU strip makes a segment without a section unusable.
    """
    first = next(header for header in records.program if header.type == PT_LOAD)
    front, address = leading(records), first.address - alignment
    if records.header.type != ET_EXEC or first.offset or front is None or address < _LOWEST:
        return None
    phoff = records.header.phoff
    table = phoff + (len(records.program) + 3) * layout(ProgramHeader, records.byteorder).size
    block = table + (front.address - address - table) % MOVED_ALIGNMENT
    size = block + len(front.data)
    if size > alignment:
        return None
    moves = front.moves(address + block, block)
    before, after = records.program, front.program(moves)
    program = [
        new if new is not old or not old.file_size else old._replace(offset=old.offset + alignment)
        for old, new in zip(before, after)
    ]
    program.insert(program.index(next(header for header in program if header.type == PT_LOAD)), first)
    program[program.index(first)] = _read_only(PT_LOAD, 0, address, size)._replace(alignment=alignment)
    sections = [
        new if new is not old or not number else old._replace(offset=old.offset + alignment)
        for number, (old, new) in enumerate(zip(records.sections, front.sections(moves)))
    ]
    chunks = [Chunk(chunk.offset + alignment, chunk.data) for chunk in front.chunks(moves)]
    offset, place = _end(records, alignment, alignment)
    # Static programs of glibc read the file header in memory (__ehdr_start), so no tool may drop these bytes.
    old = SectionHeader(
        type=SHT_PROGBITS,
        flags=SHF_ALLOC,
        address=first.address,
        offset=alignment,
        size=front.start,
        alignment=ALIGNMENT,
    )
    return Room(
        shift=alignment,
        kept=records.file.size,
        offset=offset,
        address=place,
        section_offset=offset,
        section_address=place,
        alignment=alignment,
        phoff=phoff,
        program=program,
        sections=sections,
        headers_section=old,
        chunks=[*chunks, Chunk(block, front.data)],
        survives_strip=True,
    )


def _end(records: Records, shift: int, alignment: int) -> tuple[int, int]:
    """Return offset and address of a segment after all others."""
    offset = shift + records.file.size
    offset += -offset % ALIGNMENT
    end = max(header.address + header.memory_size for header in records.program if header.type == PT_LOAD)
    return offset, end + -end % alignment + offset % alignment  # no page of it is a page of another segment


def _at_the_end(records: Records, alignment: int) -> Room:
    """Return a place in a new segment at the end of the file that also has the program headers.

    :raises FileError: there is no place.
    """
    # Kernels before 5.18 take the address of the program headers to be the address of the first segment plus their
    # offset in the file, so the new segment has the same distance from the first one in memory as in the file.
    loads = [header for header in records.program if header.type == PT_LOAD]
    kept = records.file.size
    bias = loads[0].address - loads[0].offset
    end = max(max(header.address + header.memory_size for header in loads) - bias, kept)
    offset = end + -end % alignment
    if offset + bias < 0 or (offset + bias) % alignment:
        raise FileError("a first segment that is not aligned")
    if offset - kept > _MAX_HOLE:
        raise FileError(f"segments up to {end + bias:#x}, too far from each other for a copy")
    start = offset + (len(records.program) + 2) * layout(ProgramHeader, records.byteorder).size
    start += -start % ALIGNMENT
    return Room(
        shift=0,
        kept=kept,
        offset=offset,
        address=offset + bias,
        section_offset=start,
        section_address=start + bias,
        alignment=alignment,
        phoff=offset,
        program=records.program,
        sections=list(records.sections),
        headers_section=None,
        chunks=[],
        survives_strip=False,
    )
