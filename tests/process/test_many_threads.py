"""Processes with many threads: some of them, and equal stacks together."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator

import pexpect
import pytest

from sframe_unwind.report.groups import grouped
from sframe_unwind.report.stack import Stack
from tests.process.command import NOWHERE, backtrace, functions, only_line
from tests.process.programs import SECONDS, compiled, running
from tests.waiting import wait_until

WORKERS = 25


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running(compiled("many.c", tmp_path_factory.mktemp("many"))) as started:

        def all_wait() -> bool:
            stacks = backtrace("--pid", str(started), "--json", *NOWHERE).threads.values()
            return all("pause" in functions(frames) for frames in stacks)

        wait_until(all_wait, "all threads wait")
        yield started


def test_equal_stacks_are_shown_once(process: int) -> None:
    threads = json.loads(backtrace("--pid", str(process), "--json", *NOWHERE).output)["threads"]
    workers = [thread["id"] for thread in threads if thread["name"] == "worker"]
    (timer,) = (thread for thread in threads if thread["name"] == "timer")
    assert len(workers) == WORKERS
    text = backtrace("--pid", str(process), "--group", *NOWHERE).output
    titles = [block.splitlines()[0] for block in text.split("\n\n")]
    assert titles[0] == f'Thread {process} "many"'
    assert titles[2] == f'Thread {timer["id"]} "timer"'
    assert len(titles) == 3
    before, _, numbers = titles[1].rpartition('"')
    assert before == f'{WORKERS} threads: "worker'
    first, *_, last = re.findall(r"\d+", numbers)
    assert (first, last) == (workers[0], workers[-1])
    one_by_one = backtrace("--pid", str(process), *NOWHERE).output
    assert one_by_one.count("Thread ") == len(threads) == WORKERS + 2
    assert set(text.split("\n\n")[0].splitlines()) <= set(one_by_one.splitlines())


@pytest.mark.parametrize(("option", "blocks"), [("", 3), ("--no-group", WORKERS + 2)])
def test_on_a_terminal_with_many_threads(process: int, option: str, blocks: int) -> None:
    arguments = ["-m", "sframe_unwind", "backtrace", "--pid", str(process), *NOWHERE, *filter(None, [option])]
    shown = pexpect.run(shlex.join([sys.executable, *arguments]), timeout=SECONDS, encoding="utf-8")
    assert len(re.findall(r"^end: ", shown, re.MULTILINE)) == blocks


def test_some_threads(process: int) -> None:
    by_name = backtrace("--pid", str(process), "--thread", "timer", "--json", *NOWHERE)
    ((number, frames),) = by_name.threads.items()
    assert "tick" in functions(frames)
    both = backtrace("--pid", str(process), "--thread", number, "--thread", "many", "--json", *NOWHERE)
    assert list(both.threads) == [str(process), number]
    none = backtrace("--pid", str(process), "--thread", "tim", *NOWHERE)
    expected = "sframe-unwind: --thread: no thread has the id or the name tim; the names are many, timer, worker"
    assert (none.status, none.output, only_line(none.errors)) == (2, "", expected)


def test_titles_of_groups() -> None:
    names = [("a", 5), ("b", 9), ("a", 7), ("a", 6), ("a", 3)]
    stacks = [Stack(str(number), f"Thread {number}", (), "end", name) for name, number in names]
    other = stacks[0]._replace(thread="20", signal="SIGSEGV", title="Thread 20")
    assert [one.title for one in grouped([*stacks, other])] == ['5 threads: "a" 3, 5-7; "b" 9', "Thread 20"]
