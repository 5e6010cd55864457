"""Reads the regions of a procedure (``unw_dyn_region_info_t``) with their directives from memory."""

from __future__ import annotations

from sframe_unwind.errors import FormatError
from sframe_unwind.memory import ReadMemory
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.runtime_code.libunwind.layout import Structures, Tag

MAX_REGIONS = 10_000
MAX_DIRECTIVES = 100_000
"""Maximum number of directives in one region.  A list that exceeds a maximum counts as damaged."""


class Directive(NamedTuple):
    """``unw_dyn_op_t``."""

    tag: Tag
    register: int
    when: int
    value: int


class Region(NamedTuple):
    """One region of a procedure."""

    address: int
    """Address of the structure."""
    insn_count: int
    """Length in instruction units; negative: the region ends at the end of the procedure."""
    directives: tuple[Directive, ...]


def read_regions(read: ReadMemory, structures: Structures, address: int) -> list[Region]:
    """Read the list of regions that begins at an address.

    :raises FormatError: the list is damaged.
    :raises MemoryReadError: the list cannot be read.
    """
    regions: list[Region] = []
    seen: set[int] = set()
    while address:
        if address in seen or len(regions) == MAX_REGIONS:
            raise FormatError(f"the list of regions is circular or too long, at {address:#x}")
        seen.add(address)
        following, insn_count, op_count = structures.region.unpack(read(address, structures.region.size))
        if insn_count < 0 and following:
            raise FormatError(f"region at {address:#x} has the length {insn_count}, which only the last one may have")
        if op_count > MAX_DIRECTIVES:
            found = f"{op_count:,} directives, expected at most {MAX_DIRECTIVES:,}"
            raise FormatError(f"region at {address:#x} has {found}")
        regions.append(Region(address, insn_count, _directives(read, structures, address, op_count)))
        address = following
    return regions


def _directives(read: ReadMemory, structures: Structures, region: int, count: int) -> tuple[Directive, ...]:
    layout, start = structures.directive, region + structures.region.size
    directives: list[Directive] = []
    for offset, (tag, register, when, value) in enumerate(layout.iter_unpack(read(start, count * layout.size))):
        if not 0 <= tag < len(Tag):
            where = start + offset * layout.size
            raise FormatError(f"directive at {where:#x} has the tag {tag}, expected 0 to {len(Tag) - 1}")
        if tag == Tag.STOP:
            break
        directives.append(Directive(Tag(tag), register, when, value))
    return tuple(directives)
