"""An SFrame section that patchelf moved after linking is recognised by the CFI: by `lint` and by `convert`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.convert.kinds import DWARF, SFRAME
from sframe_unwind.convert.source import read_source
from sframe_unwind.lint import PROFILES, lint
from sframe_unwind.lint import catalogue as c
from sframe_unwind.sframe.displaced import displacement
from tests.rewriting.moved import moved
from tests.samples.build import build

RANGES = [(start, start + 8) for start in (0x1000, 0x1010, 0x1038, 0x1050, 0x10A0, 0x10B0, 0x1100, 0x1138, 0x1150)]
STARTS = [start for start, _ in RANGES]


@pytest.mark.parametrize("moved_by", [0, 8, 0x1000, -0x38, -0x4000])
def test_functions_at_one_distance(moved_by: int) -> None:
    assert displacement([start - moved_by for start in STARTS], RANGES) == moved_by
    # One of nine functions may have no CFI, the others must be at the same distance.
    assert displacement([start - moved_by for start in STARTS], RANGES[1:]) == moved_by
    assert displacement([start - moved_by + 4 * (start > 0x1100) for start in STARTS], RANGES) == 0


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_few_functions_show_nothing(count: int) -> None:
    assert displacement([start - 8 for start in STARTS[:count]], RANGES) == 0
    assert displacement([start - 8 for start in STARTS], RANGES[:count]) == 0


def test_patchelf_after_lld(tmp_path: Path) -> None:
    linked, copy = moved(tmp_path)
    with elf.opened(linked) as before, elf.opened(copy) as after:
        starts = [[function.start for function in binary.sframe[0].functions()] for binary in (before, after)]
        assert [read_source(binary, None).kind for binary in (before, after)] == [SFRAME, DWARF]
    reports = [lint(path, list(PROFILES.values())) for path in (linked, copy)]
    (distance,) = {first - second for first, second in zip(*starts)}
    clean, found = ([shown.finding for shown in report.sections[0].findings] for report in reports)
    assert c.CODE_REWRITTEN not in {finding.rule for finding in clean}
    (told,) = (finding for finding in found if finding.rule is c.CODE_REWRITTEN)
    assert re.search(rf" {distance} bytes too low", told.message)


@pytest.mark.parametrize("name", ["leaf", "signals", "recursion", "sframe_only", "plt"])
def test_programs_as_they_are_linked(name: str) -> None:
    with elf.opened(build(name)) as binary:
        starts = [function.start for function in binary.sframe[0].functions()]
        assert displacement(starts, binary.cfi.ranges()) == 0
