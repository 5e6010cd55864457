"""What a run of the tests shows and keeps: outcomes, reasons of skipped tests, and transcripts of failures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import transcripts
from tests.hanging import HANG, VARIABLE, hang_after
from tests.transcripts import Transcript
from tests.work import TooMuchWorkError, at_most_lines

CHECKOUT = Path(__file__).resolve().parents[1]
PROGRAM = """
from tests.missing import absent
from tests.transcripts import Transcript
import pytest

@pytest.fixture(scope="module")
def session():
    transcript = Transcript(["gdb", "a b"])
    transcript.write("(gdb) bt\\n")
    return transcript

def test_passes(session): session.write("first\\n")
def test_fails(session):
    session.write(b"second\\n")
    raise AssertionError("wrong")
def test_fails_without(): raise AssertionError("wrong")
@pytest.fixture
def broken(): raise AssertionError("wrong")
def test_error(broken): pass
@pytest.mark.parametrize("number", [1, 2])
def test_skipped(number): absent("no such debugger")
"""

DRAWN = """
import hashlib
from hypothesis import given, strategies

drawn = []

@given(strategies.integers(), strategies.binary())
def test_draws(number, data): drawn.append((number, data))
def test_shows(): raise AssertionError(f"drawn: {len(drawn)} {hashlib.sha256(repr(drawn).encode()).hexdigest()}")
"""


def run_of(folder: Path, program: str = PROGRAM, **more: str) -> str:
    """Return the output of a run of tests in a folder, with the hooks of `tests/conftest.py`."""
    (folder / "test_some.py").write_text(program, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    options = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-q", "-c", folder / "pytest.ini", "--rootdir", folder]
    command = [sys.executable, "-m", "pytest", *map(str, options), str(folder)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "CI"))}
    done = subprocess.run(
        command, cwd=CHECKOUT, env={**clean, **more}, capture_output=True, text=True, timeout=HANG, check=False
    )
    return done.stdout


def test_a_failure_names_the_transcript_of_its_sessions(tmp_path: Path) -> None:
    """It has the whole session, which another test began, and belongs to the tests alone that used it."""
    said = run_of(tmp_path)
    (file,) = map(Path, re.findall(r"transcript of the debuggers -*\n(.*)\n", said))
    assert file.read_text(encoding="utf-8") == "$ gdb 'a b'\n(gdb) bt\nfirst\nsecond\n"
    file.unlink()


def test_a_run_ends_with_the_outcomes_and_the_reasons(tmp_path: Path) -> None:
    said = run_of(tmp_path)
    assert "\n1 passed, 3 failed, 2 skipped\n  skipped 2: no such debugger\n" in said
    assert said.splitlines()[-1].startswith("2 failed, 1 passed, 2 skipped, 1 error in ")
    assert "\n1 passed, 5 failed, 0 skipped\n" in run_of(tmp_path, CI="true")


def test_a_file_whose_tests_are_all_skipped_is_one_reason(tmp_path: Path) -> None:
    said = run_of(tmp_path, "from tests.missing import absent\nabsent('no such compiler')\n")
    assert "\n0 passed, 0 failed, 1 skipped\n  skipped 1: no such compiler\n" in said


def test_examples_do_not_depend_on_the_modules_that_are_imported(tmp_path: Path) -> None:
    """Hypothesis would try the numbers in them, and a worker imports more with each test that it runs."""
    numbers = ", ".join(str(1_000_003 * number) for number in range(1, 40))
    (tmp_path / "numbers_of_others.py").write_text(f"NUMBERS = [{numbers}]\n", encoding="utf-8")
    found = [
        re.findall("^E .*AssertionError: (drawn: 100 [0-9a-f]{64})$", run_of(tmp_path, program), flags=re.MULTILINE)
        for program in (DRAWN, f"import numbers_of_others\n{DRAWN}")
    ]
    assert len(found[0]) == 1
    assert found[0] == found[1]


def test_names_of_tests_become_names_of_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(transcripts, "FOLDER", tmp_path)
    monkeypatch.setattr(transcripts, "_of_this_test", [])
    assert transcripts.keep("tests/a.py::test_x") is None
    Transcript(["lldb"]).write("shown")
    for name in ("tests/a.py::test_x[some/../thing \x1b]", f"tests/a.py::test_{'long' * 100}"):
        file = transcripts.keep(name)
        assert file is not None
        assert file.parent == tmp_path
        assert file.read_text(encoding="utf-8") == "$ lldb\nshown"


def test_limits_grow_with_the_slowness_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for slowness in (1, 4):
        monkeypatch.setenv(VARIABLE, str(slowness))
        assert hang_after(5) == 300 * slowness
    monkeypatch.delenv(VARIABLE)
    assert hang_after(5) >= 300
    assert 1 <= float(os.environ[VARIABLE]) <= 4


def test_work_is_counted_and_ended() -> None:
    with at_most_lines(100):
        for _ in range(40):
            pass
    with pytest.raises(TooMuchWorkError, match="more than 100 lines"), at_most_lines(100):
        _endless()
    for _ in range(200):  # not counted any more
        _one_line()


def _one_line() -> None:
    pass


def _endless() -> None:
    while True:
        _one_line()
