"""Examines files on the workers of a Dask cluster.

Each worker gets one file at a time, from this process.  So it is known which file has ended a worker, and only that
file is lost with it.  Dask could distribute the files itself; but when a worker dies, it also blames the files that
wait for this worker.  If the scheduler disappears, the remaining files are examined when there is one again.
"""

from __future__ import annotations

import contextlib
import logging
import time
import warnings
from asyncio import CancelledError
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import PurePath
from typing import Any, Callable

from sframe_unwind import __version__
from sframe_unwind.code.decode.lifting import check_installed
from sframe_unwind.errors import MissingExtraError, SFrameError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.survey.finding import FoundFile
from sframe_unwind.survey.judging import judge
from sframe_unwind.survey.rows import Surveyed, SurveyPlan
from sframe_unwind.survey.running import TRIES, Answer, Work, Workers
from sframe_unwind.workers import Lost

_PATIENCE = 300.0
"""Seconds for which the scheduler, or all of its workers, may be missing."""
_TIMEOUT = 10.0
"""Seconds for an attempt to reach the scheduler."""
_PAUSE, _ROUND = 0.02, 0.5
"""Seconds between two looks at results, and between two looks at the workers."""


class ClusterError(SFrameError):
    """The cluster does not examine files."""


class _Given(NamedTuple):
    """A file that was given to a worker."""

    file: FoundFile
    cost: int
    """Number of workers that ended while they examined it."""
    worker: str
    """Address of the worker."""
    future: Any


class _Away(Exception):  # noqa: N818  # it is not an error: there is another attempt
    """The scheduler does not answer."""


def cluster_workers(
    address: str, plan: SurveyPlan, tick: Callable[[], None] | None = None, work: Work = judge
) -> Workers:
    """Return the workers of a cluster.

    :param address: address of the scheduler, as ``tcp://host:8786``.
    :param tick: called several times a second.
    :param work: examines a file; workers must be able to import it.
    :raises MissingExtraError: Dask is not installed.
    """
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError("distributed", "cluster") from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # this module reports each problem once
    return lambda files: _Cluster(distributed, address, partial(_done, plan, work), tick).answers(files)


def _done(plan: SurveyPlan, work: Work, data: bytes) -> tuple[str, Surveyed]:
    """Examine one file, in a worker.

    :raises MissingExtraError: the worker lacks the package that decodes code.
    """
    if plan.code:
        check_installed()
    return __version__, work(data, plan)


class _Cluster:
    def __init__(
        self,
        distributed: Any,
        address: str,
        work: Callable[[bytes], tuple[str, Surveyed]],
        tick: Callable[[], None] | None,
    ) -> None:
        self._distributed = distributed
        self._address = address
        self._work = work
        self._tick = tick
        self._waiting: list[tuple[FoundFile, int]] = []
        """Files, each with the number of workers that it has ended."""
        self._given: list[_Given] = []
        self._number = 0
        self._last = time.monotonic()
        """Time at which there last was a worker."""

    def answers(self, files: Iterable[FoundFile]) -> Iterator[Answer]:
        """Yield each file with its result.

        :raises ClusterError: there is no scheduler or no worker.
        """
        coming = iter(files)
        while True:
            client = self._connected()
            try:
                yield from self._connection(client, coming)
                return
            except _Away:
                # Files without a result are examined again: none of them ended a worker.
                self._waiting += [(given.file, given.cost) for given in self._given]
                self._given.clear()
            finally:
                with contextlib.suppress(Exception):
                    client.close(timeout=1)

    def _connected(self) -> Any:
        while True:
            try:
                return self._distributed.Client(self._address, timeout=_TIMEOUT, set_as_default=False)
            except (OSError, TimeoutError) as error:
                self._check_patience(f"no scheduler at {self._address}: {error}")
            except ValueError as error:
                raise ClusterError(f"--dask {self._address}: {error}") from error
            time.sleep(_ROUND)

    def _check_patience(self, what: str) -> None:
        if time.monotonic() - self._last > _PATIENCE:
            raise ClusterError(what)
        if self._tick is not None:
            self._tick()

    def _connection(self, client: Any, coming: Iterator[FoundFile]) -> Iterator[Answer]:
        """Yield results as long as the scheduler answers.

        :raises _Away: it does not.
        """
        more, looked = True, 0.0
        workers: set[str] = set()
        while more or self._waiting or self._given:
            if time.monotonic() - looked > _ROUND:
                workers = self._workers(client)
                looked = time.monotonic()
                yield from self._without(workers)
            idle = workers - {given.worker for given in self._given}
            while idle and (self._waiting or more):
                entry = self._waiting.pop() if self._waiting else next(((file, 0) for file in coming), None)
                if entry is None:
                    more = False
                    break
                self._given.append(self._give(client, idle.pop(), *entry))
            if not self._given and not more and not self._waiting:
                return
            yield from self._arrived()
            if self._tick is not None:
                self._tick()
            time.sleep(_PAUSE)

    def _workers(self, client: Any) -> set[str]:
        """Return the addresses of the present workers.

        :raises _Away: the scheduler does not answer.
        """
        try:
            found = set(client.nthreads()) if client.status == "running" else None
        except (OSError, TimeoutError, CancelledError) as error:
            raise _Away from error
        if found is None:
            raise _Away
        if found:
            self._last = time.monotonic()
        else:
            self._check_patience(f"no workers at {self._address}")
        return found

    def _give(self, client: Any, worker: str, file: FoundFile, cost: int) -> _Given:
        self._number += 1
        # The dashboard counts by the first part, and shows the second.
        key = ("survey", PurePath(file.path).name, file.digest, self._number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a large file
            future = client.submit(self._work, file.data, key=key, workers=[worker], pure=False)
        return _Given(file, cost, worker, future)

    def _without(self, workers: set[str]) -> Iterator[Answer]:
        """Take back the files of workers that have disappeared; yield those that have ended too many workers."""
        for given in [given for given in self._given if given.worker not in workers]:
            if given.future.status != "finished":
                yield from self._ended(given, 1)

    def _ended(self, given: _Given, cost: int) -> Iterator[Answer]:
        """Record that a file has ended workers."""
        self._given.remove(given)
        with contextlib.suppress(Exception):
            given.future.cancel()
        if given.cost + cost < TRIES:
            self._waiting.append((given.file, given.cost + cost))
        else:
            yield given.file, Lost("the worker that worked on it ended")

    def _arrived(self) -> Iterator[Answer]:
        for given in list(self._given):
            status = given.future.status
            if status == "error":
                error = given.future.exception()
                if not isinstance(error, self._distributed.scheduler.KilledWorker):
                    raise ClusterError(f"{given.worker}: {type(error).__name__}: {error}")
                yield from self._ended(given, TRIES)
            elif status in ("cancelled", "lost"):
                raise _Away
            elif status == "finished":
                try:
                    version, found = given.future.result(timeout=_TIMEOUT)
                except (OSError, TimeoutError, CancelledError) as error:
                    raise _Away from error
                if version != __version__:
                    raise ClusterError(f"{given.worker} has version {version}, expected {__version__}")
                self._given.remove(given)
                yield given.file, found
