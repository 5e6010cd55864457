"""A survey by a Dask cluster whose processes die, compared with an undisturbed survey."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sframe_unwind.survey.cluster import ClusterError, cluster_workers
from sframe_unwind.survey.rows import LOST, NOTHING
from tests.missing import package_needed
from tests.survey import harmful
from tests.survey.cluster import Cluster, cluster
from tests.survey.programs import plain_program, program, tar, with_sframe
from tests.survey.stores import CONVERT, contents, files_in, query, states, survey
from tests.waiting import wait_until

package_needed("distributed")

FILES = 30


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a cluster of two workers for all tests: it takes some seconds to start."""
    with cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def test_disturbed_cluster(running: Cluster, tmp_path: Path) -> None:
    """A worker is killed, one file takes all memory, and the scheduler is restarted, while the survey runs."""
    tree, database, undisturbed = tmp_path / "tree", tmp_path / "some.db", tmp_path / "undisturbed.db"
    tree.mkdir()
    for number in range(FILES):
        (tree / f"file{number:02}").write_bytes(program(number))
    (tree / "file03greedy").write_bytes(program() + harmful.GREEDY)
    disturber = threading.Thread(target=_disturb, args=(running, database))
    disturber.start()
    survey(database, tree, workers=cluster_workers(running.address, CONVERT, work=harmful.work))
    disturber.join()
    assert states(database) == [
        (LOST, "the worker that worked on it ended, 2 times", 1),
        (NOTHING, "", FILES),
    ]
    greedy = "(SELECT digest FROM paths WHERE path LIKE '%greedy')"
    assert query(database, f"SELECT state FROM files WHERE digest = {greedy}") == [(LOST,)]
    # All other files have the rows that they have in an undisturbed survey.
    (tree / "file03greedy").unlink()
    assert survey(database, tree, work=harmful.work).files == 0
    survey(undisturbed, tree, work=harmful.work)
    here, there = contents(database), contents(undisturbed)
    here["files"] = [row for row in here["files"] if row[1] != LOST]
    assert here == there


def _disturb(running: Cluster, database: Path) -> None:
    wait_until(lambda: files_in(database) >= FILES // 6, "some files are done")
    worker = _worker_of(running.workers[0].pid)
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: files_in(database) >= FILES // 2, "half of the files are done")
    running.restart_scheduler()


def _worker_of(nanny: int) -> int:
    """Return the process that works: the one with the most memory among the children of the nanny."""
    found = subprocess.run(["ps", "-o", "pid=,rss=", "--ppid", str(nanny)], capture_output=True, text=True, check=True)
    rows = [tuple(map(int, line.split())) for line in found.stdout.splitlines()]
    return max(rows, key=lambda row: row[1])[0]


def test_cluster_finds_what_processes_find(running: Cluster, tmp_path: Path) -> None:
    """Sizes, kinds and findings are equal, for files on disk and in an archive."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "one").write_bytes(plain_program())
    (tree / "two.tar").write_bytes(tar({"two": with_sframe(), "three": program(3)}))
    survey(tmp_path / "some.db", tree, workers=cluster_workers(running.address, CONVERT))
    survey(tmp_path / "other.db", tree)
    assert contents(tmp_path / "some.db") == contents(tmp_path / "other.db")


def test_no_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sframe_unwind.survey.cluster._PATIENCE", 0.5)
    monkeypatch.setattr("sframe_unwind.survey.cluster._TIMEOUT", 0.5)
    (tmp_path / "one").write_bytes(plain_program())
    with pytest.raises(ClusterError, match=r"no scheduler at tcp://127\.0\.0\.1:1"):
        survey(tmp_path / "some.db", tmp_path / "one", workers=cluster_workers("tcp://127.0.0.1:1", CONVERT))
