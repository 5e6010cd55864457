"""Waits for threads in uninterruptible sleep (state D), which no tracer can stop, and finds their registers.

Such a thread waits in the kernel, for example for a file server that does not answer, or for the child of ``vfork``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from sframe_unwind.arch import Arch
from sframe_unwind.process.base import RegisterValues
from sframe_unwind.process.ptrace import PATIENCE, field

RECORD = "registers from the kernel's record of the system call"
"""How the registers of such a thread were found."""

_ASK_AGAIN = 0.01
"""Seconds between two looks at the states."""
_ARGUMENTS = 6
"""Number of a system call's arguments in the kernel's record."""


def is_uninterruptible(process: int, thread: int) -> bool:
    """Return whether a thread is in uninterruptible sleep."""
    return _sleep(process, thread) is not None


def still_sleeping(process: int, threads: Iterable[int]) -> list[int]:
    """Wait for all of some threads together; return those that sleep all the time, at most two seconds.

    A thread that reads from a disk is often in this state, but each time for a short while: it can be stopped.
    """
    begun = {thread: _sleep(process, thread) for thread in threads}
    deadline = time.monotonic() + PATIENCE
    while True:
        begun = {thread: one for thread, one in begun.items() if one is not None and _sleep(process, thread) == one}
        if not begun or time.monotonic() > deadline:
            return list(begun)
        time.sleep(_ASK_AGAIN)


def _sleep(process: int, thread: int) -> str | None:
    """Return the number of sleeps of a thread, if it is in uninterruptible sleep; ``None``: it is not."""
    sleeps = field(process, thread, "State").startswith("D")
    return field(process, thread, "voluntary_ctxt_switches") if sleeps else None


def recorded_registers(arch: Arch, process: int, thread: int) -> RegisterValues:
    """Return the registers of a thread that can be read while it runs: pc, SP and a system call's arguments.

    They are in ``/proc/PID/task/TID/syscall`` (``proc_pid_syscall`` of Linux): the number of the call, its arguments,
    SP and pc; for a thread that waits outside a system call, -1, SP and pc.

    :returns: the values by DWARF number; none if the thread runs, or the record may not be read.
    """
    try:
        with open(f"/proc/{process}/task/{thread}/syscall", encoding="ascii") as stream:  # noqa: PTH123
            words = stream.read().split()
        if len(words) not in (3, 3 + _ARGUMENTS):
            return {}
        *arguments, sp, pc = (int(word, 0) for word in words[1:])
    except (OSError, ValueError):
        return {}
    return {arch.sp: sp, arch.pc: pc, **dict(zip(arch.system_call_arguments, arguments))}
