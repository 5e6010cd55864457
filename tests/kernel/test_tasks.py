"""Tasks read from a kernel's lists."""

from __future__ import annotations

import pytest

from sframe_unwind.debugger.tasks import chosen, context_of, grouped_lines, of_pid
from sframe_unwind.errors import KernelError
from sframe_unwind.kernel.tasks import Task, TaskList
from sframe_unwind.report.stack import ShownFrame, Stack
from tests.kernel.fake import FORK, SYMBOLS, Memory, kernel

INIT, LEADER, THREAD, IDLE = (SYMBOLS["init_task"] + 0x1000 * number for number in range(4))
SIGNAL, IDLE_SIGNAL = SYMBOLS["init_task"] + 0x10000, SYMBOLS["init_task"] + 0x11000


def task(memory: Memory, at: int, pid: int, name: bytes, state: int = 1, on_cpu: int = 0) -> None:
    memory.fill(at, 0x1000)
    memory.write(at, state, 4)
    memory.write(at + 8, on_cpu, 4)
    memory.write(at + 12, pid, 4)
    memory.put(at + 16, name)
    memory.write(at + 128 + 88, at + 0x800)
    memory.write(at + 128 + 96, FORK + 4)


def ring(memory: Memory, head: int, *members: int) -> None:
    links = (head, *members)
    for here, following in zip(links, (*members, head)):
        memory.write(here, following)


def tasks() -> tuple[Memory, TaskList]:
    """Return the idle task, which is running, a process with two threads, and a kernel thread."""
    memory = Memory()
    task(memory, INIT, 0, b"swapper/0", 0, on_cpu=1)
    task(memory, LEADER, 1, b"init")
    task(memory, THREAD, 7, b"worker", 2 | 0x100)
    task(memory, IDLE, 9, b"kworker/0:0", 0x402)
    for signal in (SIGNAL, IDLE_SIGNAL):
        memory.fill(signal, 0x1000)
    ring(memory, INIT + 32, LEADER + 32, IDLE + 32)
    ring(memory, SIGNAL + 16, LEADER + 48, THREAD + 48)
    ring(memory, IDLE_SIGNAL + 16, IDLE + 48)
    memory.write(LEADER + 64, SIGNAL)
    memory.write(IDLE + 64, IDLE_SIGNAL)
    return memory, TaskList(kernel(memory))


def test_all_tasks_with_threads_and_states() -> None:
    _, listed = tasks()
    assert [task.title for task in listed] == [
        'Task 0 "swapper/0", R',
        'Task 1 "init", S',
        'Task 7 "worker", D',
        'Task 9 "kworker/0:0", I',
    ]
    assert [task.on_cpu for task in listed] == [True, False, False, False]


def test_the_registers_of_a_task_that_does_not_run() -> None:
    memory, listed = tasks()
    found = kernel(memory)
    context = context_of(found, listed.find(7))
    assert context.innermost == (FORK + 4, THREAD + 0x800, 0)
    assert not context.interrupted  # after a call
    assert of_pid(found, "7") == context


@pytest.mark.parametrize(
    ("pid", "complaint"),
    [
        ("0", 'Task 0 "swapper/0", R runs on a processor'),
        ("5", "no task has the pid 5"),
        ("x", "the pid of a task is 'x', expected a number"),
    ],
)
def test_a_task_without_a_stack(pid: str, complaint: str) -> None:
    memory, _ = tasks()
    with pytest.raises(KernelError, match=complaint):
        of_pid(kernel(memory), pid)


def test_a_list_that_does_not_end() -> None:
    memory, _ = tasks()
    memory.write(IDLE + 32, IDLE + 32)
    with pytest.raises(KernelError, match=r"the list of tasks at 0x[0-9a-f]+ does not end"):
        list(TaskList(kernel(memory)))


@pytest.mark.parametrize(
    ("pattern", "state", "pids"),
    [("", "", [0, 1, 7, 9]), ("9", "", [9]), ("*o*", "", [7, 9]), ("", "D", [7]), ("w?rker", "D", [7])],
)
def test_the_tasks_that_a_command_asks_for(pattern: str, state: str, pids: list[int]) -> None:
    assert [task.pid for task in chosen(tasks()[1], pattern, state)] == pids


def test_no_such_task() -> None:
    with pytest.raises(KernelError, match="no task in state D with pid or command 'init'"):
        chosen(tasks()[1], "init", "D")


def test_a_part_of_a_command_gets_a_hint() -> None:
    hint = r"no task with pid or command 'kworker'; a command is given whole, or with wildcards: '\*kworker\*'$"
    with pytest.raises(KernelError, match=hint):
        chosen(tasks()[1], "kworker", "")
    with pytest.raises(KernelError, match=r"'nothing'$"):
        chosen(tasks()[1], "nothing", "")


def test_equal_stacks_are_shown_once() -> None:
    def stack_of(one: Task) -> Stack:
        pc = 0x10 if one.pid == 1 else 0x20
        return Stack(
            "",
            "",
            (ShownFrame(level=0, pc=pc, cfa=None, fp=None, function="f", place="", module="", unwinder="sframe"),),
            "start of the task",
        )

    assert list(grouped_lines(tasks()[1], stack_of)) == [
        'Task 0 "swapper/0", R, on a processor',
        'Task 1 "init", S',
        "#0  0x0000000000000010  f  sframe",
        "end: start of the task",
        "2 tasks with one stack:",
        'Task 7 "worker", D',
        'Task 9 "kworker/0:0", I',
        "#0  0x0000000000000020  f  sframe",
        "end: start of the task",
    ]
