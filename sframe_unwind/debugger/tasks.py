"""Selects and shows the tasks of a Linux kernel for commands."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator
from typing import Callable

from sframe_unwind.errors import KernelError
from sframe_unwind.kernel.linux import Kernel
from sframe_unwind.kernel.tasks import Task, TaskList
from sframe_unwind.report.stack import Stack, to_text
from sframe_unwind.unwind.saved_context import SavedContext, from_registers


def of_pid(kernel: Kernel, pid: str) -> SavedContext:
    """Return the context of a task that does not run.

    :raises KernelError: there is no such task, or it runs.
    """
    if not (pid.isascii() and pid.isdigit()):
        raise KernelError(f"the pid of a task is {pid!r}, expected a number")
    task = TaskList(kernel).find(int(pid))
    if task.on_cpu:
        raise KernelError(f"{task.title} runs on a processor: its stack is that of a thread here")
    return context_of(kernel, task)


def context_of(kernel: Kernel, task: Task) -> SavedContext:
    """Return the context in which a task that does not run will continue."""
    return from_registers(kernel.arch, task.registers, kernel.read)


def chosen(tasks: Iterable[Task], pattern: str, state: str) -> list[Task]:
    """Return the tasks that a command requests.

    :param pattern: a pid, or a pattern for the command; empty: all.
    :param state: a letter; empty: any.
    :raises KernelError: there is none.
    """
    tasks = list(tasks)
    found = [
        task
        for task in tasks
        if (not pattern or pattern == str(task.pid) or fnmatch.fnmatchcase(task.command, pattern))
        and state in ("", task.state)
    ]
    if not found:
        wanted = [f"in state {state}"] if state else []
        wanted += [f"with pid or command {pattern!r}"] if pattern else []
        longer = any(pattern in task.command for task in tasks)
        hint = f"; a command is given whole, or with wildcards: '*{pattern}*'" if pattern and longer else ""
        raise KernelError(" ".join(["no task", *wanted]) + hint)
    return found


def grouped_lines(tasks: Iterable[Task], stack_of: Callable[[Task], Stack]) -> Iterator[str]:
    """Yield the lines of ``sframe tasks``: each stack once, after its tasks.

    :param stack_of: returns the stack of a task that does not run.
    """
    running = []
    groups: dict[tuple[tuple[int, ...], str], tuple[Stack, list[Task]]] = {}
    for task in tasks:
        if task.on_cpu:
            running.append(task)
            continue
        stack = stack_of(task)
        key = tuple(frame.pc for frame in stack.frames), stack.end
        groups.setdefault(key, (stack, []))[1].append(task)
    for task in running:
        yield f"{task.title}, on a processor"
    for stack, members in groups.values():
        if len(members) > 1:
            yield f"{len(members)} tasks with one stack:"
        yield from (task.title for task in members)
        yield from to_text(stack)
