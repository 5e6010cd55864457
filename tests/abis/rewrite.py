"""Re-encodes SFrame sections in another version.  No assembler writes version 2 for s390x."""

from __future__ import annotations

import shutil
from pathlib import Path

from elftools.elf.elffile import ELFFile

from sframe_unwind import elf
from sframe_unwind.sframe.encode import SectionSpec, TableSpec, encode, usual_table
from sframe_unwind.sframe.encode_rule import function
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Table


def rewritten_copy(executable: Path, folder: Path, version: int) -> Path:
    """Make a copy of a program and its libraries whose `.sframe` sections have the same rules in another version."""
    for file in [executable, *executable.parent.glob("*.so")]:
        copy = Path(shutil.copy(file, folder))
        (section,) = elf.load(copy)
        overwrite(copy, encode(rewritten(section, version)))
    return folder / executable.name


def rewritten(section: Section, version: int) -> SectionSpec:
    """Return a section's functions with the same rules in another version, in the layout of GNU ld."""
    return SectionSpec(section.address, tuple(_table(table, version) for table in section.tables))


def _table(table: Table, version: int) -> TableSpec:
    usual = usual_table(version, table.header.abi)
    functions = []
    for described in table.functions():
        spec = function(usual, described.start, described.fde.size, zip(*table.rows(described)))
        functions.append(spec._replace(pc_type=described.fde.pc_type, repetition_size=described.fde.repetition_size))
    return usual._replace(functions=tuple(sorted(functions)))


def overwrite(file: Path, content: bytes) -> None:
    """Write bytes over the section; the rest of it becomes zeros, which are not a table."""
    with file.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".sframe")
        offset, size = section["sh_offset"], section["sh_size"]
    if len(content) > size:
        raise ValueError(f"{file}: the section has {size} bytes, {len(content)} are wanted")
    with file.open("r+b") as stream:
        stream.seek(offset)
        stream.write(content.ljust(size, b"\0"))
