"""Finds the SFrame sections of an ELF file to lint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sframe_unwind.address import Range
from sframe_unwind.elf import SECTION_NAME, ElfBinary, ProgramHeader, SectionHeader
from sframe_unwind.elf.constants import PF_X, PT_GNU_SFRAME, PT_LOAD, SHT_GROUP, SYMBOL
from sframe_unwind.elf.relocation import Relocation
from sframe_unwind.errors import FileError
from sframe_unwind.lint.reading import tables
from sframe_unwind.lint.subject import Field, Subject


def subjects(binary: ElfBinary) -> Iterator[Subject]:
    """Yield the SFrame sections of an ELF file; if it has no section headers, the segment that has the section.

    :raises FileError: the file is truncated, or SFrame has no ABI for its machine.
    :raises NoSFrameError: the file has no SFrame section.
    """
    finder = _Finder(binary)
    sections, segments = binary.sframe_sections, binary.sframe_segments
    if sections:
        read = binary.named(SECTION_NAME) or sections[0]
        for section in sections:
            subject = finder.of_section(section)
            yield subject._replace(is_read=subject.is_object or section.number == read.number)
    elif segments:
        yield from map(finder.of_segment, segments)
    else:
        raise binary.no_sframe()


def subject_of(binary: ElfBinary, data: bytes, address: int) -> Subject:
    """Return the subject for SFrame data that a linked file lacks, as if one of its segments contained them.

    :param address: address of the section.
    :raises FileError: SFrame has no ABI for the machine of the file.
    """
    return _Finder(binary).of_data(data, address)


class _Finder:
    """Makes a :class:`Subject` of each section of one file."""

    def __init__(self, binary: ElfBinary) -> None:
        self._binary = binary
        layout = binary.layout
        self._loads = [segment for segment in binary.segments if segment.type == PT_LOAD]
        code = tuple(layout.code)
        executable = tuple(sorted(_in_memory(load) for load in self._loads if load.flags & PF_X))
        text = code if layout.relocatable or not executable else executable
        self._common = Subject(
            data=b"",
            address=0,
            text=text,
            code=code or text,
            arch=binary.arch,
            is_object=layout.relocatable,
            is_movable=binary.type_name == "ET_DYN" and not binary.is_kernel,
            binary=binary,
            has_segments=bool(self._loads),
        )

    def of_section(self, section: SectionHeader) -> Subject:
        binary, end = self._binary, section.offset + section.size
        if end > binary.size:
            raise FileError(f"truncated: the section {section.name} ends at {end:#x}, the file at {binary.size:#x}")
        address = binary.layout.addresses[section.number]
        subject = self._common._replace(data=binary.relocated(section), address=address, name=section.name)
        if not subject.is_object:
            own = (part for part in binary.segments if part.type == PT_GNU_SFRAME)
            return subject._replace(
                is_loaded=any(_holds(load, address, section.size) for load in self._loads),
                segment_size=next((part.file_size for part in own if part.address == address), None),
            )
        fields = tuple(_fields(binary, section))
        return subject._replace(fields=fields, init_code=tuple(sorted(_init_code(binary))))

    def of_data(self, data: bytes, address: int) -> Subject:
        return self._common._replace(data=data, address=address, segment_size=len(data))

    def of_segment(self, segment: ProgramHeader) -> Subject:
        """Return the section at the start of a segment; its tables determine its size."""
        data = self._binary.read(segment.offset, segment.file_size)
        found, _ = tables(data)
        if found:
            data = data[: found[-1].offset + found[-1].header.total_size]
        return self._common._replace(data=data, address=segment.address, segment_size=segment.file_size)


def _in_memory(load: ProgramHeader) -> Range:
    return load.address, load.address + load.memory_size


def _holds(load: ProgramHeader, address: int, size: int) -> bool:
    return load.address <= address and address + size <= load.address + load.file_size


def _init_code(binary: ElfBinary) -> Iterator[Range]:
    ends = dict(binary.layout.code)
    for section in binary.sections:
        address = binary.layout.addresses[section.number]
        # Linux: module_init_layout_section.
        if section.name.startswith(".init") and address in ends and section.size:
            yield address, ends[address]


def _fields(binary: ElfBinary, section: SectionHeader) -> Iterator[Field]:
    group_sections = (group for group in binary.sections if group.type == SHT_GROUP)
    groups = {member: index for index, group in enumerate(group_sections) for member in _members(binary, group)}
    indexes: dict[int, list[int]] = {}
    for entry, table, pc_relative in binary.relocations.of(section.number):
        if table not in indexes:
            entries = binary.records(SYMBOL, binary.contents(binary.section(table)))
            indexes[table] = [index for *_, index, _, _ in entries]
        index = _section_of(entry, indexes[table])
        target = binary.sections[index].name if 0 < index < len(binary.sections) else ""
        in_group = index in groups and groups.get(section.number) != groups[index]
        yield Field(entry.offset, pc_relative, in_group, target)


def _section_of(entry: Relocation, indexes: Sequence[int]) -> int:
    return indexes[entry.symbol] if entry.symbol < len(indexes) else 0


def _members(binary: ElfBinary, group: SectionHeader) -> list[int]:
    """Return the numbers of the sections of a group; the first word of its contents has flags."""
    return [number for (number,) in binary.records("I", binary.contents(group))][1:]
