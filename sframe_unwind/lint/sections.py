"""Finds what is to be linted in an ELF file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from elftools.elf.constants import P_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section as ElfSection

from sframe_unwind import elf
from sframe_unwind.elf.relocation import SYMBOL, Relocation, Relocations, records
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.elf.symbols import symbols_of
from sframe_unwind.errors import FileError, NoSFrameError
from sframe_unwind.lint.reading import tables
from sframe_unwind.lint.subject import Field, Range, Subject

Segment = Any
"""pyelftools has no types."""


def subjects(file: ELFFile) -> Iterator[Subject]:
    """Yield the SFrame sections of an ELF file, or the segment that has it, where there are no section headers.

    :raises FileError: the file is truncated, or SFrame has no ABI for its machine.
    :raises NoSFrameError: the file has no SFrame section.
    """
    finder = _Finder(file)
    numbered = [
        (number, section)
        for number, section in enumerate(file.iter_sections())
        if (section.name == elf.SECTION_NAME or section["sh_type"] in elf.SHT_GNU_SFRAME)
        and section["sh_type"] != "SHT_NOBITS"  # a separate debug file keeps only the section header
    ]
    for number, section in numbered:
        yield finder.of_section(number, section)
    if numbered:
        return
    segments = [segment for segment in finder.named if segment["p_filesz"]]
    for segment in segments:
        yield finder.of_segment(segment)
    if not segments:
        raise NoSFrameError(f"no {elf.SECTION_NAME} section")


def subject_of(file: ELFFile, data: bytes, address: int) -> Subject:
    """Return a section that a linked file does not have, as if it had it in a segment of its own.

    :param address: of the section.
    :raises FileError: SFrame has no ABI for the machine of the file.
    """
    return _Finder(file).of_data(data, address)


class _Finder:
    """What all sections of a file have in common."""

    def __init__(self, file: ELFFile) -> None:
        self._file = file
        layout = Layout(file)
        self._layout = layout
        segments: list[Segment] = list(file.iter_segments())
        self.named = [segment for segment in segments if segment["p_type"] in elf.PT_GNU_SFRAME]
        self._loads = [segment for segment in segments if segment["p_type"] == "PT_LOAD"]
        code = tuple(layout.code)
        executable = tuple(sorted(_in_memory(load) for load in self._loads if load["p_flags"] & P_FLAGS.PF_X))
        text = code if layout.relocatable or not executable else executable
        self._relocations = Relocations(file, layout.addresses)
        self._common = Subject(
            data=b"",
            address=0,
            text=text,
            code=code or text,
            arch=elf.arch_of(file),
            is_object=layout.relocatable,
            layout=layout,
            symbols=symbols_of(file, layout),
            has_segments=bool(self._loads),
        )

    def of_section(self, number: int, section: ElfSection) -> Subject:
        address, size = self._layout.addresses[number], section["sh_size"]
        end, available = section["sh_offset"] + size, self._file.stream.seek(0, os.SEEK_END)
        if end > available:
            raise FileError(f"truncated: the section {section.name} ends at {end:#x}, the file at {available:#x}")
        data = self._relocations.relocated(number, section)
        subject = self._common._replace(
            data=section.data() if data is None else data, address=address, name=section.name
        )
        if not subject.is_object:
            return subject._replace(
                is_loaded=any(_holds(load, address, size) for load in self._loads),
                segment_size=next((part["p_filesz"] for part in self.named if part["p_vaddr"] == address), None),
            )
        fields = tuple(_fields(self._file, self._relocations, number))
        return subject._replace(fields=fields, init_code=tuple(sorted(_init_code(self._file, self._layout))))

    def of_data(self, data: bytes, address: int) -> Subject:
        return self._common._replace(data=data, address=address, segment_size=len(data))

    def of_segment(self, segment: Segment) -> Subject:
        """Return the section at the start of a segment, which is as long as its tables say."""
        data = segment.data()
        found, _ = tables(data)
        if found:
            data = data[: found[-1].offset + found[-1].header.total_size]
        return self._common._replace(data=data, address=segment["p_vaddr"], segment_size=segment["p_filesz"])


def _in_memory(load: Segment) -> Range:
    return load["p_vaddr"], load["p_vaddr"] + load["p_memsz"]


def _holds(load: Segment, address: int, size: int) -> bool:
    return bool(load["p_vaddr"] <= address and address + size <= load["p_vaddr"] + load["p_filesz"])


def _init_code(file: ELFFile, layout: Layout) -> Iterator[Range]:
    ends = dict(layout.code)
    for number, section in enumerate(file.iter_sections()):
        address = layout.addresses[number]
        # Linux: module_init_layout_section.
        if section.name.startswith(".init") and address in ends and section["sh_size"]:
            yield address, ends[address]


def _fields(file: ELFFile, relocations: Relocations, number: int) -> Iterator[Field]:
    groups = {
        member: index
        for index, section in enumerate(file.iter_sections("SHT_GROUP"))
        for member in _group_members(section.data(), file.little_endian)
    }
    sections = [section.name for section in file.iter_sections()]
    indexes: dict[int, list[int]] = {}
    for entry, table, pc_relative in relocations.of(number):
        if table not in indexes:
            indexes[table] = [index for *_, index, _, _ in records(file, SYMBOL, file.get_section(table).data())]
        index = _section_of(entry, indexes[table])
        target = sections[index] if 0 < index < len(sections) else ""
        in_group = index in groups and groups.get(number) != groups[index]
        yield Field(entry.offset, pc_relative, in_group, target)


def _section_of(entry: Relocation, indexes: Sequence[int]) -> int:
    return indexes[entry.symbol] if entry.symbol < len(indexes) else 0


def _group_members(data: bytes, little_endian: bool) -> list[int]:
    """Return the numbers of the sections of a group; the first word of its data has flags."""
    order = "little" if little_endian else "big"
    return [int.from_bytes(data[at : at + 4], order) for at in range(4, len(data) - 3, 4)]  # type: ignore[arg-type]
