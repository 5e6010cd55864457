"""SFrame that was moved after linking is recognised by the CFI, and not used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sframe_unwind.arch import BY_NAME
from sframe_unwind.report.status import to_text
from sframe_unwind.unwind.modules import Found, Modules, Unusable
from sframe_unwind.unwind.placement import check_placement
from tests.debugger.module_file import File
from tests.rewriting.moved import moved
from tests.samples.build import build


def of_file(path: Path) -> Modules:
    file = File(path)
    return Modules(BY_NAME["amd64"], [file.module], read=file.read)


def test_a_section_that_was_moved(tmp_path: Path) -> None:
    linked, copy = map(of_file, moved(tmp_path))
    assert linked.modules[0].section is not None
    starts = [function.start for function in linked.modules[0].section.functions()]
    assert sum(isinstance(linked.results[start], Found) for start in starts) > 200  # the C runtime's _start has no row
    assert {type(copy.results[start]) for start in starts} == {Unusable}
    said = r"not used: the section was moved after linking: its functions are \d+ bytes too low, compared with those of"
    assert any(re.search(said, line) for line in to_text(copy, "always", ()))
    assert not any("not used" in line for line in to_text(linked, "always", ()))


@pytest.mark.parametrize("name", ["leaf", "signals", "recursion", "sframe_only", "plt"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_programs_as_they_are_linked(name: str, version: int) -> None:
    (module,) = of_file(build(name, version=version)).modules
    section = module.section
    assert section is not None
    for table in section.tables:  # as by a linker that does not sort
        table.sorted = False
    check_placement(section, lambda: module.cfi)
