"""What is linted: one SFrame section, and what its consumers know of the file around it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from elftools.elf.constants import P_FLAGS
from elftools.elf.elffile import ELFFile

from sframe_unwind import elf
from sframe_unwind.arch import Arch
from sframe_unwind.elf.relocation import SYMBOL, Relocation, Relocations, records
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.elf.symbols import Symbols, symbols_of
from sframe_unwind.errors import FileError, NoSFrameError

Range = tuple[int, int]
"""Start and end address (exclusive)."""

_BEYOND = 1 << 65
"""Larger than every address."""


class Field(NamedTuple):
    """A relocation of the section."""

    offset: int
    """In bytes from the start of the section."""
    pc_relative: bool | None
    """``None``: its type is unknown."""
    in_group: bool
    """Its function is in a section group, and the section is not."""
    target: str
    """Name of the section with the function; empty: there is none."""


class Subject(NamedTuple):
    """An SFrame section with what its consumers know of the file."""

    data: bytes
    """In an object file, with relocations applied."""
    address: int
    text: tuple[Range, ...]
    """Where code can be executed: the executable segments of a linked file, sorted."""
    code: tuple[Range, ...]
    """The sections with code, sorted."""
    arch: Arch
    """Of the file."""
    is_object: bool
    layout: Layout | None = None
    symbols: Symbols | None = None
    is_loaded: bool = True
    """The section lies within one loaded segment."""
    segment_size: int | None = None
    """Length of the segment PT_GNU_SFRAME in bytes; ``None``: there is none."""
    has_segments: bool = False
    """The file has program headers that could name the section."""
    fields: tuple[Field, ...] = ()
    name: str = elf.SECTION_NAME
    init_code: tuple[Range, ...] = ()
    """The code of an object file that a kernel frees when it has initialised the module, sorted."""

    def text_end(self, address: int) -> int | None:
        """Return the end address of the executable range with an address; ``None``: there is none."""
        return _end(self.text, address)

    def code_end(self, address: int) -> int | None:
        """Return the end address of the section of code with an address; ``None``: there is none."""
        return _end(self.code, address)

    def is_kept(self, address: int) -> bool:
        """Return whether code is there as long as the file is loaded."""
        return _end(self.init_code, address) is None

    def name_of(self, address: int) -> str:
        """Return what people call an address: itself, in an object file section and offset, and the symbol."""
        if self.layout is None:
            return f"{address:#x}"
        spot = self.layout.spot(address)
        name = self.symbols.name(address) if self.symbols else None
        if name and self.symbols and (found := self.symbols.find(address)):
            # A symbol without a size reaches to the next one, but not into another section.
            name = name if self.layout.spot(found[0].address).section == spot.section else None
        return f"{spot} {name}" if name else f"{spot}"


def subjects(file: ELFFile) -> Iterator[Subject]:
    """Yield the SFrame sections of an ELF file.

    :raises FileError: the file is truncated, or SFrame has no ABI for its machine.
    :raises NoSFrameError: the file has no SFrame section.
    """
    arch = elf.arch_of(file)
    layout = Layout(file)
    is_object = layout.relocatable
    symbols = symbols_of(file, layout)
    relocations = Relocations(file, layout.addresses)
    segments = [segment for segment in file.iter_segments() if segment["p_type"] in elf.PT_GNU_SFRAME]
    loads = [segment for segment in file.iter_segments() if segment["p_type"] == "PT_LOAD"]
    executable = sorted(
        (segment["p_vaddr"], segment["p_vaddr"] + segment["p_memsz"])
        for segment in loads
        if segment["p_flags"] & P_FLAGS.PF_X
    )
    code = tuple(layout.code)
    found = False
    for number, section in enumerate(file.iter_sections()):
        if section.name != elf.SECTION_NAME and section["sh_type"] not in elf.SHT_GNU_SFRAME:
            continue
        if section["sh_type"] == "SHT_NOBITS":  # a separate debug file keeps only the section header
            continue
        found = True
        address, size = layout.addresses[number], section["sh_size"]
        data = relocations.relocated(number, section)
        if data is None:
            data = bytes(section.data())
        if len(data) < size:
            raise FileError(f"truncated: the section {section.name} has {size} bytes, {len(data)} are there")
        yield Subject(
            data,
            address,
            code if is_object or not executable else tuple(executable),
            code,
            arch,
            is_object,
            layout,
            symbols,
            is_object or any(_holds(load, address, size) for load in loads),
            next((segment["p_filesz"] for segment in segments if segment["p_vaddr"] == address), None),
            bool(loads),
            tuple(_fields(file, relocations, number)) if is_object else (),
            section.name,
            tuple(sorted(_init_code(file, layout))) if is_object else (),
        )
    if not found:
        for segment in segments:
            if segment["p_filesz"]:
                found = True
                yield _of_segment(segment, executable, code, arch, layout, symbols)
    if not found:
        raise NoSFrameError(f"no {elf.SECTION_NAME} section")


def _of_segment(
    segment: object, executable: Sequence[Range], code: tuple[Range, ...], arch: Arch, layout: Layout, symbols: Symbols
) -> Subject:
    """Return the section of a file without section headers, which is as long as its tables say."""
    data = segment.data()  # type: ignore[attr-defined]  # pyelftools has no types
    start = segment["p_vaddr"]  # type: ignore[index]
    size = segment["p_filesz"]  # type: ignore[index]
    return Subject(
        data, start, tuple(executable), code or tuple(executable), arch, False, layout, symbols, True, size, True
    )


def _holds(load: object, address: int, size: int) -> bool:
    start, length = load["p_vaddr"], load["p_filesz"]  # type: ignore[index]  # pyelftools has no types
    return bool(start <= address and address + size <= start + length)


def _end(ranges: Sequence[Range], address: int) -> int | None:
    at = bisect_right(ranges, (address, _BEYOND)) - 1
    return ranges[at][1] if at >= 0 and address < ranges[at][1] else None


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
