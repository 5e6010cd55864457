"""Sections that break one rule each, made by the project's encoder and by changes of single bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from io import BytesIO

from sframe_unwind import elf
from sframe_unwind.arch import Arch
from sframe_unwind.elf.constants import PT_LOAD
from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.catalogue import Rule
from sframe_unwind.lint.subject import Field, Subject
from sframe_unwind.sframe.constants import ARCH_BY_ABI, AbiNumber, FdeType, Flag, PcType
from sframe_unwind.sframe.encode import FunctionSpec, RowSpec, SectionSpec, TableSpec, encode, usual_table
from tests.samples.build import build

AMD64, AARCH64 = AbiNumber.AMD64_ENDIAN_LITTLE, AbiNumber.AARCH64_ENDIAN_LITTLE
ADDRESS, TEXT = 0x3000, (0x1000, 0x1080)
SP_8, SP_16 = RowSpec(0, 0x03, (8,)), RowSpec(1, 0x03, (16,))
FIRST, SECOND = FunctionSpec(0x1000, 0x40, (SP_8, SP_16)), FunctionSpec(0x1040, 0x40, (SP_8,))
FDE_SIZE, HEADER_SIZE, ATTRIBUTES_SIZE = 16, 28, 5


def table(*functions: FunctionSpec, abi: AbiNumber = AMD64, version: int = 3) -> TableSpec:
    """Return a table in the order of its functions."""
    return usual_table(version, abi)._replace(functions=functions or (FIRST, SECOND))


def subject(
    *tables: TableSpec, data: bytes | None = None, arch: Arch = ARCH_BY_ABI[AMD64], text: tuple[int, int] = TEXT
) -> Subject:
    """Return a linked file with a section."""
    content = encode(SectionSpec(ADDRESS, tables or (table(),))) if data is None else data
    return Subject(
        data=content,
        address=ADDRESS,
        text=(text,),
        code=(text,),
        arch=arch,
        is_object=False,
        segment_size=len(content),
        has_segments=True,
    )


def changed(offset: int, value: int, layout: str = "B", *tables: TableSpec) -> Subject:
    """Return the section of :func:`subject` with another value in one field."""
    data = bytearray(subject(*tables).data)
    struct.pack_into(f"<{layout}", data, offset, value)
    return subject(data=bytes(data))


FRES = HEADER_SIZE + 2 * FDE_SIZE
"""Offset of the FRE sub-section, which starts with the attributes of the first function."""
FIRST_ROW = FRES + ATTRIBUTES_SIZE
"""Offset of the rows of the first function: start, info byte, one data word."""


def one(*rows: RowSpec, size: int = 0x40, **fields: object) -> Subject:
    """Return a section with one function with the given rows, and another function."""
    return subject(table(FunctionSpec(0x1000, size, rows, **fields), SECOND))  # type: ignore[arg-type]


def flexible(*words: int) -> Subject:
    info = len(words) << 1
    return one(RowSpec(0, info, words), fde_type=FdeType.FLEX)


def linked(**fields: object) -> Subject:
    """Return a good section in an unusual file."""
    return subject()._replace(**fields)  # type: ignore[arg-type]


def relocated(*fields: Field, flags: Flag | None = None) -> Subject:
    """Return the section of an object file."""
    good = table() if flags is None else table()._replace(flags=flags)
    data = subject(good).data
    return subject(data=data)._replace(is_object=True, fields=fields)


def unloadable() -> Subject:
    """Return a good section in a program whose end is missing."""
    content = build("leaf").read_bytes()
    with elf.parsed(BytesIO(content), "program") as whole:
        last = max(part.offset + part.file_size for part in whole.segments if part.type == PT_LOAD)
    kept = bytearray(content[: last - 1])
    struct.pack_into("<Q", kept, 40, 0)  # e_shoff: there are no section headers
    struct.pack_into("<HH", kept, 60, 0, 0)
    binary = elf.ElfBinary(BytesIO(kept), "program")
    return subject()._replace(binary=binary)


def rewritten() -> Subject:
    """Return a good section in a program with the name of a section that BOLT gives."""
    content = build("leaf").read_bytes()
    assert content.count(b".fini_array\0") == 1
    binary = elf.ElfBinary(BytesIO(content.replace(b".fini_array\0", b".bolt.org.x\0")), "program")
    return subject()._replace(binary=binary)


def without_rows() -> Subject:
    """Return a good section in a program that has a function without rows."""
    binary = elf.ElfBinary(BytesIO(build("leaf").read_bytes()), "program")
    return subject()._replace(binary=binary, code=tuple(binary.layout.code))


STARTS = (HEADER_SIZE, HEADER_SIZE + FDE_SIZE)
GOOD_FIELDS = tuple(Field(offset, True, False, ".text") for offset in STARTS)

MASK = FunctionSpec(0x1000, 0x40, (SP_8, RowSpec(6, 0x03, (16,))), pc_type=PcType.MASK, repetition_size=16)
"""The mask FDE of a PLT."""

BROKEN: Mapping[Rule, Callable[[], Subject]] = {
    c.SECTION_EMPTY: lambda: subject(data=b""),
    c.SECTION_NOT_LOADED: lambda: linked(is_loaded=False),
    c.SEGMENT_MISSING: lambda: linked(segment_size=None),
    c.SEGMENT_LONGER: lambda: linked(segment_size=0x1000),
    c.TEXT_MISSING: lambda: linked(text=(), code=()),
    c.UNLOADABLE: unloadable,
    c.CODE_REWRITTEN: rewritten,
    c.CONCATENATED: lambda: subject(table(FIRST), table(SECOND)),
    c.TRAILING_BYTES: lambda: subject(data=subject().data + b"\1\2\3"),
    c.HEADER_MALFORMED: lambda: changed(0, 0x1234, "H"),
    c.BYTE_ORDER: lambda: subject(
        table(abi=AbiNumber.AARCH64_ENDIAN_BIG), arch=ARCH_BY_ABI[AbiNumber.AARCH64_ENDIAN_LITTLE]
    ),
    c.VERSION_UNKNOWN: lambda: changed(2, 4),
    c.VERSION_NOT_READ: lambda: subject(table(version=1)),
    c.FLAGS_UNKNOWN: lambda: changed(3, 0x85),
    c.ABI_UNKNOWN: lambda: changed(4, 7),
    c.ABI_OF_OTHER_MACHINE: lambda: changed(4, 4),
    c.ABI_NOT_READ: subject,
    c.NOT_SORTED: lambda: changed(3, Flag.FDE_FUNC_START_PCREL),
    c.NOT_PCREL: lambda: subject(table()._replace(flags=Flag.FDE_SORTED)),
    c.PCREL_WRONG: lambda: changed(3, Flag.FDE_SORTED),
    c.PCREL_SET: lambda: subject(table(version=2)._replace(flags=Flag.FDE_SORTED | Flag.FDE_FUNC_START_PCREL)),
    c.AUX_HEADER: lambda: subject(table()._replace(aux_header=b"more")),
    c.NO_FUNCTIONS: lambda: subject(usual_table(3, AMD64)),
    c.NO_ROWS: lambda: changed(12, 0, "I"),
    c.AREA_OUTSIDE: lambda: changed(16, 0x1000, "I"),
    c.AREAS_OVERLAP: lambda: changed(24, FDE_SIZE, "I"),
    c.AREAS_MOVED: lambda: subject(table()._replace(fde_offset=8)),
    c.ROW_COUNT: lambda: changed(12, 5, "I"),
    c.FIXED_OFFSET: lambda: changed(6, 0xF0),
    c.FDE_UNSORTED: lambda: subject(table(SECOND, FIRST)),
    c.FDE_SAME_ADDRESS: lambda: subject(table(FIRST, FIRST)),
    c.FDE_OVERLAP: lambda: subject(table(FIRST._replace(size=0x50), SECOND)),
    c.FDE_OUTSIDE_TEXT: lambda: subject(table(FIRST, SECOND._replace(start=0x2000))),
    c.FDE_SIZE_0: lambda: subject(table(FIRST, SECOND._replace(size=0))),
    c.FDE_ATTRIBUTES: lambda: changed(HEADER_SIZE + 12, 0x100, "I"),
    c.FRE_TYPE: lambda: changed(FRES + 2, 3),
    c.FDE_TYPE: lambda: changed(FRES + 3, 2),
    c.REPETITION_0: lambda: changed(FRES + 2, 0x10),
    c.FLEXIBLE: lambda: subject(
        table(FunctionSpec(0x1000, 0x40, (RowSpec(0, 0x4, (0x49, 16)),), fde_type=FdeType.FLEX), abi=AARCH64),
        arch=ARCH_BY_ABI[AARCH64],
    ),
    c.NO_ROWS_OF_FUNCTION: lambda: subject(table(FIRST, SECOND._replace(rows=()))),
    c.SIGNAL_WITHOUT_ROWS: lambda: subject(table(FIRST, SECOND._replace(rows=(), signal=True))),
    c.LARGE_FUNCTION: lambda: subject(table(FIRST, SECOND._replace(size=0x50))),
    c.INIT_CODE: lambda: subject(table(abi=AARCH64), arch=ARCH_BY_ABI[AARCH64])._replace(
        is_object=True, fields=GOOD_FIELDS, init_code=((0x1000, 0x1040),)
    ),
    c.MASK_FDE: lambda: subject(table(MASK, SECOND, version=2)),
    c.ROW_SAME_START: lambda: one(SP_8, SP_8),
    c.ROW_OUTSIDE_SECTION: lambda: changed(FRES, 200, "H"),
    c.ROW_WORDS_MANY: lambda: one(RowSpec(0, 0x09, (8, -16, -24, -32))),
    c.MASK_ROW_AFTER_END: lambda: subject(
        table(MASK._replace(rows=(SP_8, SP_16._replace(start=0x48)), repetition_size=0x50), SECOND)
    ),
    c.ROW_OUTSIDE: lambda: changed(FRES, 200, "H"),
    c.ROW_ORDER: lambda: changed(FIRST_ROW, 2),
    c.ROW_SAME_ADDRESS: lambda: one(SP_8, SP_8),
    c.ROW_AFTER_END: lambda: one(SP_8, SP_16._replace(start=0x41)),
    c.ROW_AT_END: lambda: one(SP_8, SP_16._replace(start=0x40)),
    c.ROW_WORD_SIZE: lambda: changed(FIRST_ROW + 1, 0x63),
    c.WORDS_LEFT_OVER: lambda: one(RowSpec(0, 0x07, (8, -16, -24))),
    c.WORDS_MISSING: lambda: flexible(0x39),
    c.FIRST_ROW_LATE: lambda: one(SP_16),
    c.CFA_NOT_REGISTER: lambda: flexible(0x2, 8),
    c.OUTERMOST: lambda: one(RowSpec(0, 0)),
    c.ROW_UNDEFINED: lambda: one(RowSpec(0, 0x07, (8, -16, -24))),
    c.CFA_ALIGNMENT: lambda: subject(table(FIRST._replace(rows=(SP_8,)), abi=AARCH64), arch=ARCH_BY_ABI[AARCH64]),
    c.CODE_WITHOUT_FDE: lambda: subject(text=(0x1000, 0x1200)),
    c.FUNCTION_WITHOUT_ROWS: without_rows,
    c.NOT_PASSED: without_rows,
    c.RELOCATION_STRAY: lambda: relocated(*GOOD_FIELDS, Field(8, True, False, ".text")),
    c.RELOCATION_MISSING: lambda: relocated(GOOD_FIELDS[0]),
    c.RELOCATION_COMDAT: lambda: relocated(GOOD_FIELDS[0], GOOD_FIELDS[1]._replace(in_group=True)),
    c.RELOCATION_PCREL: lambda: relocated(GOOD_FIELDS[0], GOOD_FIELDS[1]._replace(pc_relative=False)),
}
"""A section that breaks each rule."""
