"""The command `show` in several processes prints what one process prints, and reports the same errors."""

from __future__ import annotations

import os
import signal

import pytest

from sframe_unwind.cli import in_processes, main
from sframe_unwind.cli.in_processes import made_in_order
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.errors import FileError
from tests.samples.build import build

FUNCTIONS = [CodeRange(start, start + 16) for start in range(0, 640, 16)]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_processes, "_LEAST", 0)
    monkeypatch.setattr(in_processes, "_CHUNK", 64)


@pytest.mark.parametrize("form", [(), ("--json",), ("--bytes",), ("--color", "always")])
def test_output_and_status_are_those_of_one_process(capsys: pytest.CaptureFixture[str], form: tuple[str, ...]) -> None:
    found = []
    for jobs in "1", "3":
        # The tables differ at the stubs of this program, so the status is not 0.
        found.append((main(["show", str(build("plt")), "-j", jobs, *form]), capsys.readouterr()))
    assert found[0] == found[1]
    assert found[0][0] == 1
    assert "differs" in found[0][1].out if "--json" in form else "^ CFA" in found[0][1].out


def test_other_processes_make_them() -> None:
    parent = os.getpid()
    assert parent not in made_in_order(lambda _: os.getpid(), FUNCTIONS, 2)
    assert set(made_in_order(lambda _: os.getpid(), FUNCTIONS, 1)) == {parent}


def test_an_error_comes_after_what_precedes_it() -> None:
    def make(part: CodeRange) -> int:
        if part.start == 320:
            raise FileError("no code")
        return part.start

    found = made_in_order(make, FUNCTIONS, 2)
    made: list[int] = []
    with pytest.raises(FileError, match="no code"):
        made.extend(found)
    assert made == list(range(0, 320, 16))


def test_functions_of_a_process_that_was_ended_are_made_here() -> None:
    parent = os.getpid()

    def make(part: CodeRange) -> int:
        if os.getpid() != parent and part.start == 320:
            os.kill(os.getpid(), signal.SIGKILL)
        return part.start

    assert list(made_in_order(make, FUNCTIONS, 2)) == [start for start, _ in FUNCTIONS]
