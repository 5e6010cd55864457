"""Runs of a survey: finished work is not repeated, and a file that ends its worker ends nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sframe_unwind.survey.archives import library
from sframe_unwind.survey.judging import judge
from sframe_unwind.survey.reserving import reserved
from sframe_unwind.survey.rows import FAILED, LOST, NOTHING, SURVEYED, Surveyed, SurveyPlan
from sframe_unwind.survey.running import Done, local_workers
from sframe_unwind.survey.store import Store
from tests.elf.objects import run
from tests.hanging import HANG
from tests.survey.programs import plain_program, program, tar, with_sframe
from tests.survey.stores import CONVERT, contents, files_in, query, quick, states, survey
from tests.waiting import members, wait_until

CHECKOUT = Path(__file__).resolve().parents[2]


def dangerous(data: bytes, plan: SurveyPlan) -> Surveyed:
    """Return a result; some files end the process, always or once."""
    if data.endswith(b"13"):
        os.kill(os.getpid(), signal.SIGKILL)
    once = Path(os.environ["ONCE"])
    if data.endswith(b"7") and not once.exists():
        once.touch()
        os._exit(1)
    return quick(data, plan)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder of 20 files (two have the same contents), a package of five more, and a damaged archive."""
    library()  # without libarchive, a survey of packages ends at once
    folder = tmp_path / "tree"
    folder.mkdir()
    for number in range(19):
        (folder / f"file{number:02}").write_bytes(program(number))
    (folder / "same").write_bytes(program(0))
    (folder / "five.tar").write_bytes(tar({f"member{number}": program(number) for number in range(16, 21)}))
    (folder / "damaged.tgz").write_bytes(tar({"one": plain_program()}, mode="w:gz")[:500])
    (folder / "with").write_bytes(with_sframe())
    return folder


def test_a_second_survey_with_the_same_database_waits_for_the_first(tree: Path, tmp_path: Path) -> None:
    database = tmp_path / "some.db"
    command = [sys.executable, "-m", "sframe_unwind", "survey", str(tree), "--store", str(database), "-j", "1"]
    said: list[str] = []
    with reserved(str(database), said.append):
        second = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert second.stderr is not None
        line = second.stderr.readline()
        assert second.poll() is None
        assert not database.stat().st_size  # it has not even made the tables
    assert line == f"sframe-unwind: {database}: another survey writes to it: waiting for its end\n"
    output, errors = second.communicate(timeout=HANG)
    again = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    assert (second.returncode, errors) == (again.returncode, again.stderr) == (1, ""), output  # some rule is wrong
    assert len(contents(database)["paths"]) == 26
    assert said == []


def test_number_of_workers_makes_no_difference(tree: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.db", tmp_path / "two.db"
    survey(one, tree, jobs=1)
    survey(two, tree, jobs=2)
    assert contents(one) == contents(two)
    assert len(contents(one)["files"]) == 22
    assert len(contents(one)["paths"]) == 26
    assert [row[:2] for row in contents(one)["skipped"]] == [
        (f"{tree}/damaged.tgz", "a damaged archive: truncated gzip input")
    ]


def test_second_run_does_what_is_new(tree: Path, tmp_path: Path) -> None:
    database = tmp_path / "some.db"
    assert survey(database, tree, work=quick).files == 22
    assert survey(database, tree, work=quick) == Done(0, 26, 1, sum(path.stat().st_size for path in tree.iterdir()))
    (tree / "new").write_bytes(program(99))
    (tree / "file01").unlink()
    assert survey(database, tree, work=quick).files == 1
    paths = {path for (path,) in query(database, "SELECT path FROM paths")}
    assert str(tree / "new") in paths
    assert str(tree / "file01") not in paths
    # Another plan has separate results.
    assert survey(database, tree, plan=SurveyPlan(), work=quick).files == 22


def test_what_is_wanted_again_is_done_again(tree: Path, tmp_path: Path) -> None:
    database = tmp_path / "some.db"
    survey(database, tree)
    before = contents(database)
    store = Store(str(database))
    store.forget(store.begin(SurveyPlan(convert=True), [], ""))
    assert not query(database, "SELECT * FROM findings")
    store.close()
    survey(database, tree)
    assert contents(database) == before


def test_file_that_ends_two_workers_is_left(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = tmp_path / "some.db"
    monkeypatch.setenv("ONCE", str(tmp_path / "once"))
    survey(database, tree, work=dangerous)
    assert (tmp_path / "once").exists()
    assert states(database) == [
        (LOST, "the process that worked on it was ended by SIGKILL, 2 times", 1),
        (NOTHING, "", 21),
    ]


def test_memory_of_a_worker_is_limited(tmp_path: Path) -> None:
    """A file that takes too much memory is reported, and ends no worker."""
    small, large, zeros = tmp_path / "small", tmp_path / "large", tmp_path / "zeros"
    small.write_bytes(plain_program())
    zeros.write_bytes(bytes(1 << 27))
    run("objcopy", f"--add-section=.debug_frame={zeros}", small, large)
    database = tmp_path / "some.db"
    survey(database, large, small, workers=local_workers(CONVERT, 1, memory=1 << 28))
    assert states(database) == [(FAILED, "more memory than a worker may have", 1), (SURVEYED, "", 1)]


SLOW = """
import sys, time
from pathlib import Path
from tests.survey.stores import survey
from tests.survey.stores import quick
begun = Path(sys.argv[3])
def work(data, plan):
    if len(list(begun.iterdir())) >= 8:
        time.sleep(86400)
    (begun / str(time.monotonic_ns())).touch()
    return quick(data, plan)
survey(Path(sys.argv[1]), Path(sys.argv[2]), work=work)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_interrupted_run_goes_on(tree: Path, tmp_path: Path, number: signal.Signals) -> None:
    """However a run is interrupted, the next one does only the rest: the result is that of an undisturbed run."""
    database, undisturbed = tmp_path / "some.db", tmp_path / "undisturbed.db"
    begun = tmp_path / "begun"
    begun.mkdir()
    command = [sys.executable, "-c", SLOW, str(database), str(tree), str(begun)]
    program = subprocess.Popen(command, cwd=CHECKOUT, stderr=-3, start_new_session=True)

    wait_until(lambda: files_in(database) >= 3 or program.poll() is not None, "three files are done")
    program.send_signal(number)
    program.wait(HANG)
    before = files_in(database)
    assert 3 <= before < 22
    wait_until(lambda: not members(program.pid), "the workers have ended")
    assert files_in(database) == before
    assert survey(database, tree, work=quick).files == 22 - before
    survey(undisturbed, tree, work=quick)
    assert contents(database) == contents(undisturbed)


def test_judge_is_what_workers_do(tree: Path, tmp_path: Path) -> None:
    database = tmp_path / "some.db"
    survey(database, tree / "with")
    (row,) = query(database, "SELECT sframe, functions, covered FROM files")
    expected = judge(with_sframe(), SurveyPlan(convert=True)).file
    assert row == (expected.sframe, expected.functions, expected.covered)
