"""Finds segments that a kernel or a dynamic linker cannot load.

The conditions are from the gABI, chapter 5 ("Program Header"), and from the loaders: ``fs/binfmt_elf.c`` of Linux and
``elf/dl-load.c`` of glibc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sframe_unwind.address import KERNEL_HALF, PAGE_SIZE
from sframe_unwind.elf.binary import ElfBinary
from sframe_unwind.elf.constants import PT_DYNAMIC, PT_LOAD, PT_PHDR, SHF_ALLOC
from sframe_unwind.elf.records import ProgramHeader


def loading_problems(binary: ElfBinary) -> list[str]:
    """Return the problems of the segments of a linked file; none if it is neither a program nor a library.

    :raises FileError: the program headers are malformed.
    """
    loads = [segment for segment in binary.segments if segment.type == PT_LOAD]
    # A kernel has segments at any addresses, and is not loaded as programs are.
    if binary.is_object or binary.is_debug_file or binary.is_kernel:
        return []
    return [*_own_problems(loads, binary.size), *_order_problems(loads), *_header_problems(binary, loads)]


def _own_problems(loads: Sequence[ProgramHeader], size: int) -> Iterator[str]:
    for load in loads:
        name, end = f"the segment at {load.address:#x}", load.offset + load.file_size
        if load.file_size and end > size:
            yield f"{name} ends at {end:#x} of the file, which has {size:#x} bytes"
        if load.file_size > load.memory_size:
            in_memory = f"expected at most its {load.memory_size:#x} in memory"
            yield f"{name} has {load.file_size:#x} bytes in the file, {in_memory}"
        alignment = max(load.alignment, PAGE_SIZE)
        if alignment & (alignment - 1):
            yield f"{name} has the alignment {load.alignment:#x}, expected a power of two"
        elif load.address % alignment != load.offset % alignment:
            yield f"{name} is at {load.offset:#x} of the file, expected the same remainder by {alignment:#x}"
        if load.address + load.memory_size > KERNEL_HALF:
            yield f"{name} has {load.memory_size:#x} bytes, which end beyond the address space"


def _order_problems(loads: Sequence[ProgramHeader]) -> Iterator[str]:
    for before, after in zip(loads, loads[1:]):
        end = before.address + before.memory_size
        if after.address < before.address:
            yield f"the segment at {after.address:#x} comes after the one at {before.address:#x}, expected them sorted"
        elif after.address < end:
            yield f"the segments at {before.address:#x} and {after.address:#x} overlap: the first ends at {end:#x}"


def _header_problems(binary: ElfBinary, loads: Sequence[ProgramHeader]) -> Iterator[str]:
    names = {PT_PHDR: "program headers at {:#x} are", PT_DYNAMIC: "dynamic section at {:#x} is"}
    for segment in binary.segments:
        if segment.type in names and not any(_holds(load, segment) for load in loads):
            yield f"the {names[segment.type].format(segment.address)} in no loaded segment"
    start, end = binary.program_headers
    for section in binary.sections:
        is_loaded = section.flags & SHF_ALLOC and section.has_contents and section.size
        if is_loaded and start < section.offset < end:
            yield f"the program headers end at {end:#x} of the file, over {section.name} at {section.offset:#x}"


def _holds(load: ProgramHeader, part: ProgramHeader) -> bool:
    inside = load.address <= part.address and part.address + part.file_size <= load.address + load.file_size
    return inside and part.address - load.address == part.offset - load.offset
