"""Sections of real producers: describing and encoding them gives the same bytes, as does encoding their rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.sframe.encode import RowSpec, describe, encode
from sframe_unwind.sframe.encode_rule import row
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Match, Miss
from tests.missing import toolchain_needed
from tests.samples.build import build
from tests.samples.catalogue import Build, all_builds

SIGNED_SAMPLES = ("leaf", "recursion", "plt", "free_walk")
"""Samples that are tested with keys A and B as well; the others would only repeat it."""

BUILDS = [
    wanted
    for wanted in all_builds()
    if (wanted.pie or wanted.name.startswith("free"))
    and (wanted.variant == "O2" or (wanted.variant in ("pac", "pacb") and wanted.name in SIGNED_SAMPLES))
]


def files(wanted: Build) -> list[Path]:
    """Return a sample's program and its libraries."""
    with toolchain_needed():
        program = build(wanted.name, wanted.abi, wanted.version, wanted.variant, wanted.pie)
    return [program, *program.parent.glob("*.so")]


def contents(file: Path) -> bytes:
    """Return the bytes of the section, read without the code under test."""
    with elf.opened(file) as binary:
        (section,) = binary.sframe_sections
        return binary.contents(section)


@pytest.mark.parametrize(
    "wanted", BUILDS, ids=lambda wanted: f"{wanted.name}-{wanted.abi}-v{wanted.version}-{wanted.variant}"
)
def test_what_a_producer_wrote_comes_back(wanted: Build) -> None:
    for file in files(wanted):
        (section,) = elf.load(file)
        described = describe(section)
        assert encode(described) == contents(file)
        assert rows_of_rules(section) == [function.rows for table in described.tables for function in table.functions]


def rows_of_rules(section: Section) -> list[tuple[RowSpec, ...]]:
    """Return the rows that the encoder makes from the rules that the decoder makes from the rows."""
    made = []
    for spec, table in zip(describe(section).tables, section.tables):
        for function in table.functions():
            pairs = zip(*table.rows(function))
            made.append(tuple(row(spec, start, rule, function.fde.fde_type) for start, rule in pairs))
    return made


@pytest.mark.parametrize(("abi", "version"), [("amd64", 1), ("amd64", 2), ("amd64", 3), ("aarch64", 2), ("s390x", 3)])
def test_item_03_a_producers_tables_concatenated(abi: str, version: int) -> None:
    """Two programs' tables in one section, as a linker leaves them that does not know SFrame."""
    with toolchain_needed():
        sources = [build(name, abi, version) for name in ("plt", "offsets")]
    apart = [describe(elf.load(file)[0]) for file in sources]
    tables = [table for spec in apart for table in spec.tables]
    # Far enough from each other that their functions do not overlap.
    moved = tables[1]._replace(
        functions=tuple(function._replace(start=function.start + 0x10_0000) for function in tables[1].functions),
        offset=None,
    )
    joined = apart[0]._replace(tables=(tables[0], moved), size=None)
    content = encode(joined)
    section = Section(content, joined.address)
    assert section.rest is None
    assert encode(describe(section)) == content
    functions = [function for table in (tables[0], moved) for function in table.functions]
    assert [function.start for function in section.functions()] == [function.start for function in functions]
    for function in functions:
        found = section.find(function.start + function.size - 1)
        assert found is not None
        assert found.start == function.start


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", ["plt", "plt_ibt"])
def test_item_12_a_real_plt(name: str, version: int) -> None:
    """Every address of every function, mask functions too, is compared with a search from the first row to the last."""
    with toolchain_needed():
        file = build(name, "amd64", version)
    (section,) = elf.load(file)
    masks = 0
    for function in describe(section).tables[0].functions:
        masks += function.pc_type
        for offset in range(function.size):
            within = offset % function.repetition_size if function.pc_type else offset
            expected = [one.start for one in function.rows if one.start <= within]
            match = section.lookup(function.start + offset)
            assert (match.row_start if isinstance(match, Match) else None) == (expected[-1] if expected else None)
            assert isinstance(match, Miss) or match.function.start == function.start
    assert masks > 0
