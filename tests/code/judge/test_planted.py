"""Wrong directives are found at the first wrong instruction, and right directives are not called wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.code.recipes import MACHINES, Planted, planted, source
from sframe_unwind import elf
from sframe_unwind.code.judge.findings import DWARF, SFRAME, CodeVerdict, Finding
from sframe_unwind.elf.symbols import Symbols
from sframe_unwind.verify.code_check import check_elf
from tests.code.assembled import assemble


class Checked:
    """The functions of one machine, assembled and checked.

    :param variant: the assembler's name of the machine.
    """

    def __init__(self, machine: str, variant: str, folder: Path) -> None:
        self.path = assemble(variant, source(planted(machine)), folder / f"{machine}.o")
        with elf.opened(self.path) as binary:
            self.symbols: Symbols = binary.symbols
            self.verdict: CodeVerdict = check_elf(binary, binary.sframe)
        self.described = {
            table: {verdict.start for verdict in self.verdict.functions if table in verdict.worst}
            for table in (SFRAME, DWARF)
        }

    def address(self, name: str) -> int:
        (found,) = self.symbols.addresses(name)
        return found

    def findings(self, function: Planted) -> Iterator[Finding]:
        for finding in self.verdict.findings:
            name = self.symbols.name(finding.address) or ""
            if name.partition("+")[0].partition(".")[0] in (function.name, function.label):
                yield finding

    def has_rows(self, function: Planted, table: str) -> bool:
        """Return whether a table describes the function, and its cold part: SFrame cannot express everything."""
        names = [function.name, *([f"{function.name}.cold"] if "%cold" in function.recipe.lines else [])]
        return all(self.address(name) in self.described[table] for name in names)


@pytest.fixture(scope="module", params=[*MACHINES, "aarch64_be"])
def checked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Checked]:
    machine = str(request.param).removesuffix("_be")
    return machine, Checked(machine, request.param, tmp_path_factory.mktemp("planted"))


def test_there_are_enough() -> None:
    assert sum(function.is_wrong for machine in MACHINES for function in planted(machine)) >= 60


def test_wrong_functions_are_found_at_the_first_wrong_instruction(checked: tuple[str, Checked]) -> None:
    machine, found = checked
    for function in planted(machine):
        if function.is_wrong:
            expected = found.address(function.label)
            for table in (SFRAME, DWARF):
                if table == SFRAME and not found.has_rows(function, table):
                    continue
                first = [one for one in found.findings(function) if one.table == table][:3]
                assert first, f"{machine}: {function.recipe.title}: not found in {table}"
                told = [(one.address - expected, one.what) for one in first]
                assert (0, function.recipe.what) in told, f"{machine}: {function.recipe.title} in {table}: {first}"
                assert min(told)[0] == 0, f"{machine}: {function.recipe.title} in {table}: {first}"


def test_right_functions_are_not_accused(checked: tuple[str, Checked]) -> None:
    machine, found = checked
    for function in planted(machine):
        if not function.is_wrong:
            assert not list(found.findings(function)), f"{machine}: {function.recipe.title}"


def test_few_functions_are_beyond_sframe(checked: tuple[str, Checked]) -> None:
    """Functions without SFrame from GNU as are judged only in DWARF."""
    machine, found = checked
    missing = {function.recipe.title for function in planted(machine) if not found.has_rows(function, SFRAME)}
    assert len(missing) <= 4, missing


def test_nothing_stays_unknown(checked: tuple[str, Checked]) -> None:
    _, found = checked
    for counts in found.verdict.counts.values():
        assert counts.unknown == 0
