"""A Dask cluster on this machine: scheduler and workers are separate processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port
from tests.waiting import wait_until

CHECKOUT = Path(__file__).resolve().parents[2]
MEMORY = "400MiB"
"""The memory of a worker: its nanny ends it when it takes more."""


class Cluster:
    """A scheduler and its workers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self.address = f"tcp://127.0.0.1:{self._port}"
        self.scheduler = self._start_scheduler()
        self.workers = [self._start_worker() for _ in range(2)]

    def _start(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "0.9"}
        with (self._folder / f"{module}.log").open("ab") as log:
            command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments]
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=self._folder)

    def _start_scheduler(self) -> subprocess.Popen[bytes]:
        return self._start("dask_scheduler", "--host", "127.0.0.1", "--port", str(self._port), "--no-dashboard")

    def _start_worker(self) -> subprocess.Popen[bytes]:
        where = ("--host", "127.0.0.1", "--no-dashboard", "--local-directory", str(self._folder))
        return self._start("dask_worker", self.address, "--nthreads", "1", "--memory-limit", MEMORY, *where)

    def restart_scheduler(self) -> None:
        """End the scheduler, which ends the workers, and start all anew, as a supervisor does."""
        self.scheduler.kill()
        self.scheduler.wait()
        self.scheduler = self._start_scheduler()
        for number, worker in enumerate(self.workers):
            worker.kill()
            worker.wait()
            self.workers[number] = self._start_worker()

    def close(self) -> None:
        """End all processes."""
        for process in (*self.workers, self.scheduler):
            process.kill()  # the workers end with the nannies that watch them
            process.wait()


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Start a cluster, yield it, and end it."""
    started = Cluster(folder)
    try:
        wait_until(lambda: (folder / "dask_worker.log").exists(), "workers")
        yield started
    finally:
        started.close()
