"""The rules for a section in its file, for its headers, and for the order of its functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sframe_unwind.elf.loading import loading_problems
from sframe_unwind.errors import counted
from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.findings import Finding
from sframe_unwind.lint.functions import Described, by_table
from sframe_unwind.lint.reading import Rest, TableReading
from sframe_unwind.lint.subject import Subject
from sframe_unwind.sframe import header
from sframe_unwind.sframe.constants import ARCH_BY_ABI, FEATURES, KNOWN_FLAGS, VERSIONS, AbiNumber, Flag
from sframe_unwind.sframe.header import Header

_VERSION, _FLAGS, _ABI, _FIXED_FP, _FIXED_RA, _AUX, _FDES, _FRES, _FDE_AT, _FRE_AT = 2, 3, 4, 5, 6, 7, 8, 12, 20, 24
"""Offsets of the fields of a header, in bytes."""

_ELD = {4: "i386", 5: "s390x", 6: "riscv64", 7: "riscv32", 8: "hexagon"}
"""The ABI numbers that the linker eld gives to other machines; in the specification, 4 is s390x."""


def container_findings(subject: Subject) -> Iterator[Finding]:
    """Yield the errors of the section as a part of its file."""
    if not subject.data:
        yield Finding(c.SECTION_EMPTY, "the section has no bytes")
        return
    if not subject.text:
        yield Finding(c.TEXT_MISSING, "the file has no code that can be executed")
    if subject.is_object:
        return
    if subject.binary is not None:
        yield from (Finding(c.UNLOADABLE, problem) for problem in loading_problems(subject.binary))
        if subject.binary.rewriter:
            yield Finding(c.CODE_REWRITTEN, f"{subject.binary.rewriter}: rows describe the code as it was before")
    if not subject.is_loaded:
        where = f"{len(subject.data):#x} bytes at {subject.address:#x}"
        yield Finding(c.SECTION_NOT_LOADED, f"{where}, which are in no loaded segment")
    if subject.has_segments and subject.segment_size is None:
        yield Finding(c.SEGMENT_MISSING, "no segment PT_GNU_SFRAME names the section")
    elif subject.segment_size is not None and subject.segment_size > len(subject.data):
        longer = f"the segment has {subject.segment_size:#x} bytes, the section {len(subject.data):#x}"
        yield Finding(c.SEGMENT_LONGER, longer)


def rest_findings(subject: Subject, tables: Sequence[TableReading], rest: Rest | None) -> Iterator[Finding]:
    """Yield the faults of bytes that are not a table, and of a section with several tables."""
    if len(tables) > 1:
        number = sum(table.header.num_fdes for table in tables[1:])
        message = f"{len(tables)} headers; consumers read the first: {number} of the functions are under the others"
        yield Finding(c.CONCATENATED, message, tables[1].offset)
    if rest is not None:
        rule = c.HEADER_MALFORMED if rest.is_first else c.TRAILING_BYTES
        yield Finding(rule, rest.why, rest.offset)
    if not tables and subject.data and rest is None:
        version = header.read(subject.data, 0)[1][0]
        yield Finding(c.VERSION_UNKNOWN, f"version {version}, expected {_listed(VERSIONS)}", _VERSION)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def header_findings(subject: Subject, table: TableReading, rows_claimed: int) -> Iterator[Finding]:
    """Yield the errors of a header.

    :param rows_claimed: the number of rows that its FDEs claim.
    """
    for rule, field, message in _header(subject, table, rows_claimed):
        yield Finding(rule, message, table.offset + field)


def _header(subject: Subject, table: TableReading, rows_claimed: int) -> Iterator[tuple[c.Rule, int, str]]:
    head = table.header
    yield from _identity(subject, head)
    if not head.flags & Flag.FDE_SORTED and not subject.is_object:
        yield c.NOT_SORTED, _FLAGS, "FDE_SORTED is not set: a search must look at every FDE"
    if not head.flags & Flag.FDE_FUNC_START_PCREL:
        yield c.NOT_PCREL, _FLAGS, "FDE_FUNC_START_PCREL is not set"
    elif FEATURES[head.version].pcrel_optional:
        yield c.PCREL_SET, _FLAGS, "FDE_FUNC_START_PCREL is set"
    if head.aux_size:
        yield c.AUX_HEADER, _AUX, f"an auxiliary header of {counted(head.aux_size, 'byte')}"
    if not head.num_fdes:
        yield c.NO_FUNCTIONS, _FDES, "no FDEs"
    if not head.num_fres:
        yield c.NO_ROWS, _FRES, "no FREs"
    if head.num_fres != rows_claimed:
        yield c.ROW_COUNT, _FRES, f"{head.num_fres} FREs, but the FDEs have {rows_claimed}"
    size = len(subject.data) - table.offset
    for name, start, end, field in (
        ("FDE", head.fdes_start, head.fdes_end, _FDE_AT),
        ("FRE", head.fres_start, head.fres_end, _FRE_AT),
    ):
        if end > size:
            what = f"the {name} sub-section, {start:#x} to {end:#x}"
            yield c.AREA_OUTSIDE, field, f"{what}, ends after the section's {size:#x}"
    if head.fres_start < head.fdes_end:
        yield c.AREAS_OVERLAP, _FRE_AT, f"the FREs begin at {head.fres_start:#x}, the FDEs end at {head.fdes_end:#x}"
    if head.fde_offset or head.fres_start != head.fdes_end:
        yield c.AREAS_MOVED, _FDE_AT, "the FDEs do not follow the header, or the FREs the FDEs"


def _identity(subject: Subject, head: Header) -> Iterator[tuple[c.Rule, int, str]]:
    unknown = head.flags & ~KNOWN_FLAGS[head.version]
    if unknown:
        yield c.FLAGS_UNKNOWN, _FLAGS, f"flag bits {int(unknown):#x}, which version {head.version} does not define"
    number = int(head.abi)
    eld = f" (eld gives this number to {_ELD[number]})" if number in _ELD else ""
    if head.byteorder != subject.arch.byteorder:
        yield c.BYTE_ORDER, 0, f"{head.byteorder}-endian, in a {subject.arch.byteorder}-endian file"
    if number not in set(AbiNumber):
        yield c.ABI_UNKNOWN, _ABI, f"ABI {number}, expected 1 to 4{eld}"
        return
    arch = ARCH_BY_ABI[AbiNumber(number)]
    if arch is not subject.arch:
        yield c.ABI_OF_OTHER_MACHINE, _ABI, f"ABI {number} ({arch.name}) in a file for {subject.arch.name}{eld}"
    usual = -8 if arch.ra is None else 0
    if head.fixed_ra_offset != usual:
        yield c.FIXED_OFFSET, _FIXED_RA, f"fixed RA offset {head.fixed_ra_offset}, expected {usual}"
    if head.fixed_fp_offset:
        yield c.FIXED_OFFSET, _FIXED_FP, f"fixed FP offset {head.fixed_fp_offset}, expected 0"


def order_findings(
    subject: Subject, tables: Sequence[TableReading], functions: Sequence[Described]
) -> Iterator[Finding]:
    """Yield the errors in the order and the extents of functions; each rule once for each place."""
    for table, own in zip(tables, by_table(functions, tables)):
        if table.header.flags & Flag.FDE_SORTED and not subject.is_object:
            for previous, function in zip(own, own[1:]):
                if function.start < previous.start:
                    message = f"after the FDE of {subject.name_of(previous.start)}, which begins later"
                    yield _of(subject, c.FDE_UNSORTED, function, message)
        yield from _overlaps(subject, own)


def _overlaps(subject: Subject, functions: Sequence[Described]) -> Iterator[Finding]:
    reach: Described | None = None
    for function in sorted(functions, key=lambda function: (function.start, function.size)):
        if reach is not None and function.start == reach.start:
            yield _of(subject, c.FDE_SAME_ADDRESS, function, f"another FDE has the address {function.start:#x}")
        elif reach is not None and function.start < reach.end and function.size:
            message = f"the function at {subject.name_of(reach.start)} ends at {reach.end:#x}"
            yield _of(subject, c.FDE_OVERLAP, function, message)
        if reach is None or function.end >= reach.end:
            reach = function


def _of(subject: Subject, rule: c.Rule, function: Described, message: str) -> Finding:
    return Finding(rule, message, function.offset, function.start, subject.name_of(function.start))


def pcrel_findings(
    subject: Subject, tables: Sequence[TableReading], functions: Sequence[Described]
) -> Iterator[Finding]:
    """Yield the start fields that contradict the flag FDE_FUNC_START_PCREL.

    In a linked file, the code decides: if all starts are outside the code with the meaning of the flag, and all inside
    without it, they contradict the flag.
    """
    for table, own in zip(tables, by_table(functions, tables)):
        flagged = bool(table.header.flags & Flag.FDE_FUNC_START_PCREL)
        if subject.is_object or not own:
            continue
        shifts = [function.offset - table.offset for function in own]
        # Before errata 1 there was no flag, and unsorted tables nevertheless had starts relative to the field.
        taken = header.starts_are_pcrel(table.header.version, table.header.flags)
        relative_to_field = [function.start + (0 if taken else shift) for function, shift in zip(own, shifts)]
        relative_to_section = [start - shift for start, shift in zip(relative_to_field, shifts)]
        by_flag, other = relative_to_field, relative_to_section
        if not flagged:
            by_flag, other = other, by_flag
        inside = sum(subject.text_end(start) is not None for start in by_flag)
        inside_otherwise = sum(subject.text_end(start) is not None for start in other)
        if inside_otherwise == len(own) and inside < len(own):
            what = "relative to the section" if flagged else "relative to the field"
            message = f"the flag is {'set' if flagged else 'not set'}, but the start fields are {what}"
            yield Finding(c.PCREL_WRONG, message, table.offset + _FLAGS)
