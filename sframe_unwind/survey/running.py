"""Runs a survey: looks for files, has the new ones examined, and records the results."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterable, Iterator, Sequence
from typing import Callable, Union

from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.survey.bounds import Bounds
from sframe_unwind.survey.finding import Finder, FoundFile, Passed, Same, Skipped
from sframe_unwind.survey.judging import judge
from sframe_unwind.survey.rows import LOST, FileRow, Surveyed, SurveyPlan
from sframe_unwind.survey.store import Store, SurveyRun
from sframe_unwind.workers import Lost, as_completed, can_fork

TRIES = 2
"""Maximum number of workers to try for one file, if they end while they examine it."""

Answer = tuple[FoundFile, Union[Surveyed, Lost]]
Workers = Callable[[Iterable[FoundFile]], Iterator[Answer]]
"""Examines files, in any order; a file is taken when a worker is idle."""
Work = Callable[[bytes, SurveyPlan], Surveyed]
"""Examines one file."""


class Done(NamedTuple):
    """Progress of a survey."""

    files: int = 0
    """Number of files that were surveyed."""
    known: int = 0
    """Number of files that had been surveyed before, or have the contents of another file."""
    skipped: int = 0
    bytes: int = 0
    """Size of the files on disk that have been examined, in bytes."""


def local_workers(
    plan: SurveyPlan, jobs: int, memory: int = 0, tick: Callable[[], None] | None = None, work: Work = judge
) -> Workers:
    """Return workers on this machine.

    Each file is examined in another process, because it may end that process.

    :param memory: limit of the address space of each, in bytes; 0: none.
    :param tick: called several times a second.
    :param work: examines a file.
    """
    if not can_fork():
        return lambda files: ((file, work(file.data, plan)) for file in files)

    def done(file: FoundFile) -> Surveyed:
        _limit_memory(memory)
        return work(file.data, plan)

    return lambda files: as_completed(done, files, jobs, tick, TRIES)


def _limit_memory(size: int) -> None:
    """Limit the address space of this process.

    :param size: in bytes; 0: no limit.
    """
    if size:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        with contextlib.suppress(OSError, ValueError):  # the limit is lower already
            resource.setrlimit(resource.RLIMIT_AS, (size, hard))


class Survey:
    """One run.

    :param report: called with the progress whenever it changes.
    """

    def __init__(
        self,
        store: Store,
        run: SurveyRun,
        bounds: Bounds = Bounds(),  # noqa: B008  # it cannot change
        report: Callable[[Done], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._run = run
        self._bounds = bounds
        self._report = report
        self._seen = store.known(run)
        """Digests of the files that are done, or were given to workers."""
        self.done = Done()

    def survey(self, roots: Sequence[str], workers: Workers) -> Done:
        """Survey the files that names stand for; return the number of files."""
        for file, found in workers(self._new_files(roots)):
            if isinstance(found, Lost):
                found = Surveyed(FileRow(LOST, f"{found.why}, {TRIES} times", bytes=len(file.data)))
            self._store.add(self._run, file.digest, found)
            self._count(files=1)
        self._store.end(self._run, roots)
        return self.done

    def _new_files(self, roots: Sequence[str]) -> Iterator[FoundFile]:
        for root in roots:
            for item in Finder(self._bounds).find(root):
                if isinstance(item, Passed):
                    self._count(bytes=item.size)
                elif isinstance(item, Skipped):
                    self._store.add_skipped(self._run, root, item)
                    self._count(skipped=item.files)
                else:
                    self._store.add_path(self._run, root, item.path, item.digest)
                    if isinstance(item, Same) or item.digest in self._seen:
                        self._count(known=1)
                        continue
                    self._seen.add(item.digest)
                    yield item

    def _count(self, **more: int) -> None:
        self.done = self.done._replace(**{name: getattr(self.done, name) + count for name, count in more.items()})
        self._report(self.done)
