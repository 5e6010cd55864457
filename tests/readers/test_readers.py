"""Readers of SFrame on the same sections: this project's, libsframe 2.47, glibc's.  ``make readers`` runs all."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.readers.__main__ import kind, table
from lab.readers.corpus import Case, cases
from lab.readers.protocol import guarded
from lab.readers.readers import UnavailableError, glibc, libsframe, ours
from lab.readers.running import CHECKOUT, Outcome, Reader, run
from sframe_unwind.lint.catalogue import CODE_REWRITTEN, RULES
from tests.missing import absent
from tests.pairing import paired

PAGE = CHECKOUT / "docs" / "readers.md"


def test_the_corpus() -> None:
    names = [case.name for case in cases()]
    assert len(names) == len(set(names)) > 700
    assert {(case.version, case.abi) for case in cases() if case.is_valid} == {
        *((version, abi) for version in (1, 2, 3) for abi in (1, 2, 3)),
        *((version, 4) for version in (2, 3)),
    }
    assert [case.name.partition("-")[0] for case in cases() if case.name.startswith("SF")] == [
        rule.id for rule in RULES if rule is not CODE_REWRITTEN
    ]
    rows = [row for case in cases() if case.is_valid for _, row in case.expected]
    assert rows.count(None) > 1000
    assert len([row for row in rows if row is not None]) > 5000


def test_ours_is_right_and_survives_all() -> None:
    found = run(ours(), cases())
    wrong = [
        (case.name, result) for case, result in paired(cases(), found) if case.is_valid and result.outcome != "right"
    ]
    assert wrong == []
    assert {result.outcome for case, result in paired(cases(), found) if not case.is_valid} == {
        Outcome.READS,
        Outcome.REFUSES,
    }
    assert table([(ours(), list(paired(cases(), found)))])[-1] in PAGE.read_text(encoding="utf-8").splitlines()


def documented(name: str) -> set[tuple[str, str]]:
    """Return outcome and kind of the cases that the page lists for a reader."""
    found = re.findall(
        rf"^\| {re.escape(name)} \| (\w+) \| (`[^|]+`) \| \S", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {(outcome, one) for outcome, kinds in found for one in re.findall(r"`([^`]+)`", kinds)}


def differing(reader: Reader, made: list[Case]) -> Iterator[tuple[str, str]]:
    """Yield outcome and kind of the valid sections that a reader does not read correctly."""
    found = run(reader, made)
    for case, result in paired(made, found):
        if case.is_valid and result.outcome is not Outcome.RIGHT:
            yield result.outcome.value, kind(case)


@pytest.mark.parametrize("make", [lambda: libsframe("2.47"), glibc], ids=["libsframe", "glibc"])
def test_the_page_has_each_difference(make: object) -> None:
    assert callable(make)
    try:
        reader = make()
    except UnavailableError as error:
        absent(str(error))
    assert isinstance(reader, Reader)
    made = [case for case in cases() if reader.is_for(case) and case.is_valid]
    assert len(made) > 100
    assert set(differing(reader, made)) == documented(reader.name)


def test_a_crash_and_a_failure_are_told_apart(tmp_path: Path) -> None:
    adapter = tmp_path / "adapter.py"
    code = f"""\
import ctypes, sys
sys.path.insert(0, {str(CHECKOUT)!r})
from lab.readers.protocol import guarded, serve
def read(request):
    if request.address == 1:
        return ctypes.string_at(ctypes.addressof(guarded(request.section)), 4096) and []
    if request.address == 2:
        raise ValueError("a bug here")
    return [None for _ in request.pcs]
serve(read)
"""
    adapter.write_text(code, encoding="utf-8")
    case = next(case for case in cases() if case.is_valid)
    reader = Reader("stub", (sys.executable, str(adapter)), frozenset((1,)), frozenset((1,)))
    lost, crashed = run(reader, [case, case._replace(address=1)])
    assert lost.outcome is Outcome.LOSES
    assert (crashed.outcome, crashed.detail) == (Outcome.CRASHES, "SIGSEGV")
    with pytest.raises(OSError, match="a bug here"):
        run(reader, [case._replace(address=2)])


def test_the_copy_has_the_bytes() -> None:
    assert bytes(guarded(b"12345")) == b"12345"
