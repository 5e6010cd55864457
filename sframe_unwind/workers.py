"""Maps a function over items in several processes, none of which outlives this one.

:mod:`concurrent.futures` is not used for three reasons.  If a signal ends the parent, its workers remain and wait
forever.  An interrupt has no effect until the workers have finished their items.  And if one worker is killed, for
example by the kernel when memory is short, all results are lost.

Here the workers are forked, so that the function need not be pickled.  Each worker watches a pipe of which only this
process has the other end.  The pipe is closed when this process ends for any reason, and then the worker ends.
``PR_SET_PDEATHSIG`` would serve the same purpose, but exists only on Linux, needs :mod:`ctypes`, and refers to a thread
of the parent.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import threading
import traceback
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, Callable, Generic, NoReturn, TypeVar

from sframe_unwind.named_tuple import NamedTuple

Item = TypeVar("Item")
Result = TypeVar("Result")

Progress = Callable[[int, int], None]
"""Called with the number of finished items, and the number of all items."""

_AHEAD = 256
"""Maximum number of items that are begun beyond the next one in order, because their results are kept in memory."""
_TICK = 0.25
"""Seconds between two calls of ``tick``."""
_LENGTH_SIZE = 8
_AT_ONCE = 1 << 20


class WorkerError(Exception):
    """The function raised an exception in a worker."""


class Lost(NamedTuple):
    """Stands for the result of an item whose worker ended while it worked on it."""

    why: str


class _Raised(NamedTuple):
    error: str
    trace: str


class _Worker:
    """One process.

    :attr:`number` is that of the item that it works on; ``None``: it has none.
    """

    def __init__(self, process: int, requests: int, results: int) -> None:
        self.process = process
        self.requests = requests
        self.results = results
        self.number: int | None = None
        self._received = bytearray()

    def ask(self, number: int, item: object) -> None:
        """Give an item to the worker, which must be idle."""
        self.number = number
        with contextlib.suppress(BrokenPipeError):  # the worker has ended; `receive` reports that
            _send(self.requests, pickle.dumps(item))

    def receive(self) -> bytes | None:
        """Read the available part of a result, and return the result when it is complete.

        :raises EOFError: the worker has ended.
        """
        received = os.read(self.results, _AT_ONCE)
        if not received:
            raise EOFError
        self._received += received
        length = int.from_bytes(self._received[:_LENGTH_SIZE], "little")
        if len(self._received) < _LENGTH_SIZE + length:
            return None
        result = bytes(self._received[_LENGTH_SIZE:])
        self._received.clear()
        return result

    def end(self) -> int:
        """End the process at once, since it has nothing to tidy up; return its wait status."""
        os.close(self.requests)
        os.close(self.results)
        os.kill(self.process, signal.SIGKILL)  # until it is waited for, the number is its own
        return os.waitpid(self.process, 0)[1]


class _Pool(Generic[Item, Result]):
    def __init__(self, work: Callable[[Item], Result]) -> None:
        self._work = work
        self._life, self._alive = os.pipe()
        """The ends of a pipe: the one that workers watch, and the one that only this process keeps open."""
        self.workers: dict[int, _Worker] = {}
        """The workers by the descriptor from which their results are read."""

    def start(self) -> _Worker:
        """Fork one more worker."""
        # Without the mask, an interrupt could come before the new worker ignores interrupts, which would print a
        # traceback, or before this process has recorded the worker, which it then would not end.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return self._fork(before)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _fork(self, mask: Iterable[int]) -> _Worker:
        """Fork a worker.

        :param mask: the signals that the worker blocks.
        """
        request, requests = os.pipe()
        results, result = os.pipe()
        process = os.fork()
        if process == 0:
            try:
                for descriptor in (requests, results, self._alive):
                    os.close(descriptor)
                for other in self.workers.values():
                    os.close(other.requests)
                    os.close(other.results)
                self._serve(request, result, mask)
            finally:
                os._exit(1)
        os.close(request)
        os.close(result)
        worker = self.workers[results] = _Worker(process, requests, results)
        return worker

    def _serve(self, request: int, result: int, mask: Iterable[int]) -> None:
        # The terminal sends an interrupt to all its processes; the parent ends the workers.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        threading.Thread(target=_end_with_parent, args=(self._life,), daemon=True).start()
        with os.fdopen(request, "rb", buffering=0) as requests:
            while length := requests.read(_LENGTH_SIZE):
                data = _received(requests, int.from_bytes(length, "little"))
                answer: Result | _Raised
                try:
                    answer = self._work(pickle.loads(data))
                    data = pickle.dumps(answer)
                except Exception as error:  # noqa: BLE001  # it is the parent's to deal with
                    data = pickle.dumps(_Raised(f"{type(error).__name__}: {error}", traceback.format_exc()))
                _send(result, data)

    def arrived(self, output: int | None) -> Iterator[tuple[int, Result | Lost]]:
        """Wait a moment for results, and yield those that came, with the numbers of their items.

        :raises BrokenPipeError: nobody reads the output any more.
        :raises WorkerError: the function raised an exception.
        """
        poll = select.poll()
        for descriptor in self.workers:
            poll.register(descriptor, select.POLLIN)
        if output is not None:
            poll.register(output, 0)  # poll reports errors in any case
        for descriptor, _ in poll.poll(int(1000 * _TICK)):
            if descriptor == output:
                raise BrokenPipeError
            worker = self.workers[descriptor]
            try:
                data = worker.receive()
            except EOFError:
                lost = self.discard(worker)
                if worker.number is not None:
                    yield worker.number, lost
                continue
            if data is not None and worker.number is not None:
                result = pickle.loads(data)
                if isinstance(result, _Raised):
                    raise WorkerError(result.error) from WorkerError(result.trace)
                yield worker.number, result
                worker.number = None

    def discard(self, worker: _Worker) -> Lost:
        """Forget a worker that has ended; return why its result is lost."""
        del self.workers[worker.results]
        status = worker.end()
        if os.WIFSIGNALED(status):
            return Lost(f"the process that worked on it was ended by {_signal_name(os.WTERMSIG(status))}")
        return Lost(f"the process that worked on it ended with status {os.WEXITSTATUS(status)}")

    def close(self) -> None:
        """End all workers."""
        for worker in list(self.workers.values()):
            self.discard(worker)
        os.close(self._life)
        os.close(self._alive)


def _send(descriptor: int, data: bytes) -> None:
    """Write the length of data, then the data."""
    os.write(descriptor, len(data).to_bytes(_LENGTH_SIZE, "little"))
    view = memoryview(data)
    at = 0
    while at < len(data):
        at += os.write(descriptor, view[at : at + _AT_ONCE])


def _received(stream: BinaryIO, size: int) -> bytes:
    """Read ``size`` bytes, which have been written or are about to be written."""
    data = bytearray()
    while len(data) < size and (piece := stream.read(min(size - len(data), _AT_ONCE))):
        data += piece
    return bytes(data)


def _end_with_parent(life: int) -> NoReturn:
    while os.read(life, 1):
        pass
    os._exit(1)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def can_fork() -> bool:
    """Return whether this system can fork processes."""
    return hasattr(os, "fork") and hasattr(select, "poll")


def in_order(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    jobs: int,
    output: int | None = None,
    tick: Callable[[], None] | None = None,
) -> Iterator[Result | Lost]:
    """Yield the result of a function for each item, in the order of the items.

    :param work: called in the workers; items and results are pickled.
    :param jobs: maximum number of workers.
    :param output: descriptor of the pipe to which the results are written; if nobody reads it any more, the work ends.
    :param tick: called several times a second.
    :raises BrokenPipeError: nobody reads the output any more.
    :raises WorkerError: the function raised an exception.
    """
    pool: _Pool[Item, Result] = _Pool(work)
    done: dict[int, Result | Lost] = {}
    following = sent = 0
    try:
        while following < len(items):
            idle = [worker for worker in pool.workers.values() if worker.number is None]
            while sent < min(len(items), following + _AHEAD) and (idle or len(pool.workers) < jobs):
                (idle.pop() if idle else pool.start()).ask(sent, items[sent])
                sent += 1
            done.update(pool.arrived(output))
            while following in done:
                yield done.pop(following)
                following += 1
            if tick is not None:
                tick()
    finally:
        pool.close()


def as_completed(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    jobs: int,
    tick: Callable[[], None] | None = None,
    tries: int = 1,
) -> Iterator[tuple[Item, Result | Lost]]:
    """Yield each item with its result, in the order in which they are completed.

    An item is taken when a worker is idle, and one more in advance, because items may be large.

    :param work: called in the workers; items and results are pickled.
    :param jobs: maximum number of workers.
    :param tick: called several times a second.
    :param tries: maximum number of workers to try for an item, if they end while they work on it.
    :raises WorkerError: the function raised an exception.
    """
    pool: _Pool[Item, Result] = _Pool(work)
    coming = iter(items)
    waiting: list[tuple[Item, int]] = []
    """Items, each with the number of workers that ended while they worked on it."""
    asked: dict[int, tuple[Item, int]] = {}
    following = 0
    try:
        more = True
        while more or waiting or asked:
            if more and not waiting:
                entry = next(((item, 0) for item in coming), None)
                more = entry is not None
                waiting += [entry] if entry is not None else []
            if waiting and len(asked) < jobs:
                idle = next((worker for worker in pool.workers.values() if worker.number is None), None)
                asked[following] = waiting.pop()
                (idle or pool.start()).ask(following, asked[following][0])
                following += 1
                continue
            for number, result in pool.arrived(None):
                item, cost = asked.pop(number)
                if isinstance(result, Lost) and cost + 1 < tries:
                    waiting.append((item, cost + 1))
                else:
                    yield item, result
            if tick is not None:
                tick()
    finally:
        pool.close()
