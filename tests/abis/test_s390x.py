"""s390x: registers saved in registers, sections of version 2, and the back chain as a second reference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.arch.s390x import ARCH, SP_FROM_CFA
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Match
from tests.abis.debuggers import DEBUGGERS, debugger, described
from tests.abis.rewrite import rewritten_copy
from tests.expectations import STOPS
from tests.gdb.driver import call
from tests.gdb.programs import built
from tests.samples.build import toolchain
from tests.samples.readelf import read_symbols

VARIANTS = ("O0", "O2", "Os", "fp")
FPRS = range(16, 32)
"""DWARF numbers of the floating-point registers."""

WALK = replace(next(stop for stop in STOPS if stop.sample == "free_walk"), sample="free_backchain")


def opened(path: Path) -> Section:
    """Return a file's only section."""
    (section,) = elf.load(path)
    return section


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", sorted(DEBUGGERS))
def test_back_chain_tells_the_same_frames(name: str, version: int, tmp_path: Path) -> None:
    paths = []
    for variant in VARIANTS[1:]:  # at -O0 the leaf function has a frame
        path = built(WALK.sample, ARCH.name, 3, variant)
        (tmp_path / variant).mkdir()
        paths.append(path if version == 3 else rewritten_copy(path, tmp_path / variant, version))
    programs = [described(WALK, path, ARCH.name) for path in paths]
    answers = call(debugger(name, ARCH.name), "tests.abis.inside.backchain.collect", programs=programs)
    for answer in answers:
        assert answer["functions"] == list(WALK.functions)
        assert answer["unwinders"] == ["sframe"] * len(WALK.functions)
        assert answer["by sframe"] == answer["by back chain"]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("variant", ["O2", "Os"])
def test_leaf_has_its_registers_in_registers(variant: str, version: int, tmp_path: Path) -> None:
    original = built("free_leaf", ARCH.name, 3, variant)
    path = original if version == 3 else rewritten_copy(original, tmp_path, version)
    section = opened(path)
    assert {table.header.version for table in section.tables} == {version}
    inside = read_symbols(toolchain(ARCH.name, 3), original)["sample_in_leaf"].address
    match = section.lookup(inside)
    assert isinstance(match, Match)
    rule = match.rule
    assert rule.cfa == (ARCH.sp, 160, False)
    for place in (rule.ra, rule.fp):
        assert place is not None
        assert place.base in FPRS
        assert (place.offset, place.in_memory) == (0, False)


@pytest.mark.parametrize("variant", VARIANTS)
def test_version_2_says_what_version_3_said(variant: str, tmp_path: Path) -> None:
    original = built("free_walk", ARCH.name, 3, variant)
    copy = rewritten_copy(original, tmp_path, 2)
    (three,), (two,) = opened(original).tables, opened(copy).tables
    assert (three.header.version, two.header.version) == (3, 2)
    functions = list(zip(three.functions(), two.functions()))
    assert len(three) == len(two) == len(functions) > 10
    for one, other in functions:
        assert (one.start, one.end) == (other.start, other.end)
        assert three.rows(one) == two.rows(other)


def test_padding_return_address() -> None:
    """A function that saves its frame pointer but not its return address still needs a word for the return address."""
    section = opened(built("free_leaf", ARCH.name, 3, "O2"))
    rules = [rule for function in section.functions() for rule in function.table.rows(function)[1]]
    assert any(rule.ra is None and rule.fp is not None for rule in rules)
    assert SP_FROM_CFA == -160
