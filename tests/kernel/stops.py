"""Stops the kernel in QEMU at random times and in functions, and checks that each stack reaches its end.

    python -m tests.kernel.stops [--random N] [--each N] [--seed N]

The exit status is 1 if a stack ends anywhere but at the entry from user space, at the start of the task, or in code in
which only system registers have the interrupted function.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent
from typing import NamedTuple

from tests.kernel.machine import booted, run
from tests.kernel.shown import CHECKOUT, ENDS, PARTLY, end_of, functions, load
from tools.kernel import kernel

_SYSTEM_CALLS = "vfs_read vfs_open do_filp_open path_openat link_path_walk seq_read_iter do_task_stat fput do_el0_svc"
_MEMORY = "do_mem_abort handle_mm_fault do_mmap unmap_region clear_page kmem_cache_alloc kmem_cache_free"
_TIMERS = "do_nanosleep hrtimer_start_range_ns hrtimer_wakeup scheduler_tick update_process_times run_timer_softirq"
_TASKS = "try_to_wake_up __schedule finish_task_switch task_work_run rcu_core rcu_gp_init process_one_work"
_ENTRIES = "gic_handle_irq __do_softirq ret_to_user arch_cpu_idle cpu_do_idle"
FUNCTIONS = " ".join((_SYSTEM_CALLS, _MEMORY, _TIMERS, _TASKS, _ENTRIES)).split()
"""System calls, page faults, interrupts, softirqs, kernel threads and the idle task."""
SECONDS = 3000


class Stopped(NamedTuple):
    """A stop in kernel code."""

    where: str
    """The function of the breakpoint; empty: at a random time."""
    innermost: str
    end: str
    text: str
    gdb: tuple[str, ...]
    elr: int | None
    """Where an exception was not saved yet: the register ELR_EL1."""
    saved: int | None
    """The pc that it saved some instructions later."""

    @property
    def is_whole(self) -> bool:
        """Whether SFrame's walk reaches an end, or says truly why not, and GDB's backtrace the same function."""
        return self.end in (*ENDS, PARTLY) and functions(self.text)[-1] in self.gdb[-2:] and self.elr == self.saved


def stopped(line: str) -> Stopped | None:
    """Return a stop; ``None``: it was in user space."""
    found = json.loads(line)
    if not found["pc"] >> 63:
        return None
    shown = functions(found["sframe"])
    return Stopped(
        found["where"],
        shown[0],
        end_of(found["sframe"]),
        found["sframe"],
        tuple(found["gdb"]),
        found.get("elr"),
        found.get("saved"),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Boot, stop and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=200)
    parser.add_argument("--each", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name, booted(kernel(), Path(name), SECONDS) as machine:
        plan = Path(name) / "plan.json"
        result = Path(name) / "result.jsonl"
        work = {"random": options.random, "each": options.each, "seed": options.seed, "functions": FUNCTIONS}
        plan.write_text(json.dumps({**work, "result": str(result)}), encoding="utf-8")
        os.environ["STOPS"] = str(plan)
        script = ["set pagination off", "set width 0", "set confirm off", f"target remote 127.0.0.1:{machine.port}"]
        script += [load("gdb-18"), f"source {CHECKOUT}/tests/kernel/stops_in_gdb.py", "detach"]
        gdb = [str(Path(sys.executable).with_name("gdb")), "-nx", "-q", "-batch"]
        said = run([*gdb, *(part for line in script for part in ("-ex", line)), str(machine.built.vmlinux)], SECONDS)
        lines = result.read_text(encoding="utf-8").splitlines()
    assert lines, said
    stops = [one for one in map(stopped, lines) if one is not None]
    report(stops, len(lines) - len(stops))
    at_random = sum(not one.where for one in stops)
    if at_random < options.random:
        print(f"{at_random} stops at random times, expected {options.random}: {said[-500:]}")
    return 0 if at_random >= options.random and all(one.is_whole for one in stops) else 1


def report(stops: list[Stopped], in_user_space: int) -> None:
    """Print the figures, and each stack that ends elsewhere."""
    for title, part in (
        ("functions", [s for s in stops if s.where]),
        ("random times", [s for s in stops if not s.where]),
    ):
        ends = Counter(one.end if one.is_whole else "elsewhere" for one in part)
        names = {one.where or one.innermost for one in part}
        through = sum("<exception " in one.text for one in part)
        print(
            f"{title}: {len(part)} stops, {len(names)} functions, {through} stacks through an exception; {dict(ends)}"
        )
    print(f"in user space: {in_user_space}")
    begun = [one for one in stops if one.elr is not None]
    print(f"not saved yet: {len(begun)}, of which {sum(one.elr == one.saved for one in begun)} save ELR_EL1 as pc")
    print("not reached:", *sorted(set(FUNCTIONS) - {one.where for one in stops}))
    for one in stops:
        if not one.is_whole:
            print(f"\n{one.where or 'at a random time'}:\n{indent(one.text, '  ')}  GDB: {' '.join(one.gdb)}")


if __name__ == "__main__":
    sys.exit(main())
