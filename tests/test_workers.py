"""The worker processes: their results, and that none of them outlives the program that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sframe_unwind.workers import Lost, WorkerError, as_completed, in_order
from tests.hanging import HANG
from tests.waiting import runs, wait_until

CHECKOUT = Path(__file__).resolve().parents[1]

BUSY = """
import os, sys
from sframe_unwind.workers import in_order
def work(number):
    os.write(2, f"{os.getpid()}\\n".encode())  # at once, as two write
    while True:
        pass
try:
    for result in in_order(work, range(8), 2, 1):
        pass
except (KeyboardInterrupt, BrokenPipeError) as error:
    print(type(error).__name__, file=sys.stderr)
"""
"""A program whose two workers print their process ids, and never finish."""


class Busy:
    """A running program, both workers of which are at work."""

    def __init__(self, text: str = BUSY) -> None:
        self.program = subprocess.Popen(
            [sys.executable, "-c", text],
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # nohup has it ignored
        )
        assert self.program.stderr is not None
        self.workers = [int(self.program.stderr.readline()) for _ in range(2)]

    def ended(self) -> tuple[int, str]:
        """Return the status and the last output of the program, after all its processes have ended.

        They do not end by themselves: their work never does.
        """
        _, said = self.program.communicate(timeout=HANG)
        wait_until(lambda: not any(map(runs, self.workers)), "workers have ended")
        return self.program.returncode, said


def test_results_are_in_the_order_of_the_items() -> None:
    def work(number: int) -> int:
        time.sleep(0.02 * (number % 3 == 0))
        return number * number

    assert list(in_order(work, range(700), 3)) == [number * number for number in range(700)]
    assert list(in_order(work, [], 3)) == []


def test_large_results() -> None:
    assert list(in_order(lambda number: bytes(number << 20), range(5), 2)) == [bytes(n << 20) for n in range(5)]


def test_worker_that_is_killed_costs_its_item_only() -> None:
    def work(number: int) -> int:
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 5:
            os._exit(7)
        return number

    expected: list[int | Lost] = list(range(9))
    expected[3] = Lost("the process that worked on it was ended by SIGKILL")
    expected[5] = Lost("the process that worked on it ended with status 7")
    assert list(in_order(work, range(9), 2)) == expected


def test_items_are_taken_when_they_can_be_done() -> None:
    """Items are large: only those exist that are being worked on, and one more."""
    there = 0

    def items() -> Iterator[bytes]:
        nonlocal there
        for number in range(40):
            there += 1
            assert there <= 4, "two that are done, one that is being given back, and one in advance"
            yield bytes([number]) * (1 << 20)

    found = set()
    for item, size in as_completed(len, items(), 2):
        there -= 1
        assert size == 1 << 20
        found.add(item[0])
    assert found == set(range(40))
    assert list(as_completed(len, [], 2)) == []


def test_item_may_cost_several_workers(tmp_path: Path) -> None:
    def work(number: int) -> int:
        if number == 3 or (number == 5 and not (tmp_path / "once").exists()):
            (tmp_path / "once").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    lost = Lost("the process that worked on it was ended by SIGKILL")
    done = dict(as_completed(work, [0, 5, 1, 3, 2], 2, tries=2))
    assert done == {0: 0, 5: 5, 1: 1, 3: lost, 2: 2}


def test_exception_is_passed_on() -> None:
    def work(number: int) -> int:
        return 1 // number

    with pytest.raises(WorkerError, match="ZeroDivisionError: ") as caught:
        list(in_order(work, [1, 0, 1], 2))
    assert "return 1 // number" in str(caught.value.__cause__)


def test_workers_end_when_nobody_wants_the_rest() -> None:
    results = in_order(lambda _: os.getpid(), range(99), 2)
    process = next(results)
    assert isinstance(process, int)
    assert runs(process)
    del results
    assert not runs(process)


def test_one_interrupt_ends_all() -> None:
    """A terminal sends the interrupt to all processes of the foreground."""
    busy = Busy()
    os.killpg(busy.program.pid, signal.SIGINT)
    assert busy.ended() == (0, "KeyboardInterrupt\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP, signal.SIGSEGV])
def test_no_worker_outlives_the_program(number: signal.Signals) -> None:
    busy = Busy()
    busy.program.send_signal(number)
    assert busy.ended() == (-number, "")


def test_no_worker_outlives_its_program_when_it_is_busy_with_results() -> None:
    """The worker writes to a pipe that nobody reads, and whose other end is then closed."""
    text = BUSY.replace("while True:\n        pass", "return bytes(1 << 24)")
    busy = Busy(text.replace("pass\n", "import time; time.sleep(86400)\n"))
    busy.program.kill()
    assert busy.ended()[0] == -signal.SIGKILL


def test_closed_pipe_ends_all() -> None:
    busy = Busy()
    assert busy.program.stdout is not None
    busy.program.stdout.close()
    assert busy.ended() == (0, "BrokenPipeError\n")
