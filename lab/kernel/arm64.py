"""The kernel for AArch64 that is built with SFrame: where it is stopped, and what is checked there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.kernel.checks import Stop, check_dump, check_inner_frames, check_stack, check_tasks, outermost
from lab.kernel.driving import at_stop
from lab.kernel.machine import Machine, booted, dump_memory
from lab.kernel.shown import ENDS, PARTLY, TASK, USER, functions, load
from sframe_unwind.address import KERNEL_HALF
from sframe_unwind.verify import verify
from tests.missing import absent
from tools.kernel import KernelUnavailable, kernel

IRQ = r"<exception el1h_64_irq>|el0t_64_irq"
"""An interrupt of the kernel, or of its program."""
STOPS = {
    "vfs_read": Stop(("el0t_64_sync",), (USER,)),
    "do_mem_abort": Stop(("el0_da", "el0t_64_sync"), (USER,)),
    "clear_page": Stop(("kernel_init_pages", "el0t_64_sync"), (USER,)),  # a leaf in assembly, without rows
    "scheduler_tick": Stop(("call_on_irq_stack", IRQ), ENDS),
    "rcu_gp_init": Stop(("rcu_gp_kthread", "kthread", "ret_from_fork"), (TASK,)),
    "arch_cpu_idle": Stop(("do_idle", "start_kernel", "__primary_switched"), (TASK,)),
}

DEBUGGERS_OF_TEST_ALL = ("gdb-18", "lldb")
STOPS_OF_TEST_ALL = ("scheduler_tick", "vfs_read", "rcu_gp_init", "clear_page")
"""The debuggers and stops of `make test-all`; `make test-kernel` runs the rest."""


@contextmanager
def booted_arm64(folder: Path) -> Iterator[Machine]:
    """Boot the kernel, which is built before if necessary; skip the test where that is not possible."""
    try:
        built = kernel()
    except KernelUnavailable as error:
        absent(str(error))
    with booted(built, folder) as machine:
        yield machine


def check_stop_of_arm64(name: str, function: str, machine: Machine) -> None:
    """Check the stacks at a stop in a function of :data:`STOPS`."""
    alone, _, bt, by_sframe = at_stop(name, machine, function, "bt", load(name), "bt", "sframe bt")
    shown = functions(by_sframe)
    assert shown[0] == function
    check_stack(shown, by_sframe, STOPS[function])
    check_inner_frames(name, "arm64", alone, bt)
    assert "corrupt" not in bt
    assert shown[-1] in outermost(name, bt), bt


def check_tasks_of_arm64(name: str, machine: Machine) -> None:
    """Check the output about tasks."""
    everything, blocked, kthreadd, status = check_tasks(name, machine, 8, "sframe status")
    assert 'Task 0 "swapper/0", R' in everything
    assert 'Task 1 "init", R, on a processor' in everything
    assert re.findall(r'^Task \d+ "(.*)", (\w)$', blocked, re.MULTILINE) == [("vforker", "D")] * 3
    assert functions(kthreadd)[-2:] == ["kthreadd", "ret_from_fork"]
    row = re.search(r"^vmlinux .* (\d+)  .* (\d+)%$", status, re.MULTILINE)
    assert row is not None, status
    assert int(row[1]) == dict(verify(machine.built.vmlinux).sframe_sections)[".sframe"]
    assert 95 <= int(row[2]) <= 100


def check_dump_of_arm64(machine: Machine, folder: Path) -> Path:
    """Write a dump of the machine, check that each stack in it is that of drgn, and return its path."""
    path = folder / "vmcore"
    dump_memory(machine, path)
    stacks = check_dump(path, machine.built.vmlinux, 8)
    # The program may be in user space when the dump is written; the kernel's stack then has no frames.
    in_kernel = [one for one in stacks if one.own[0][0] >= KERNEL_HALF]
    assert len(in_kernel) >= len(stacks) - 1
    assert [(one.stack.title, one.stack.end) for one in in_kernel if one.stack.end not in (*ENDS, PARTLY)] == []
    return path
