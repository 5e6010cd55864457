"""Stops a kernel in QEMU at random times and in functions, and checks that each stack reaches its end.

    python -m lab.kernel.stops [--machine NAME] [--debugger NAME] [--tree DIRECTORY] [--generate]
                                 [--random N] [--each N] [--seed N] [--kept FILE]

Each stop is printed at once.  `--kept` writes the stops to a file; a later run with this file makes only the stops that
the file lacks.

Up to the first frame of entry code, the debugger alone is right: those frames and their variables must be the same with
the plugin.  The exit status is 1 if they differ, or if a stack ends anywhere but at the entry from user space, at the
start of the task, or in code in which only system registers have the interrupted function.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from textwrap import indent
from typing import NamedTuple

from lab.kernel.driving import DEBUGGERS, script
from lab.kernel.machine import Machine, booted, booted_debian, booted_s390x, run
from lab.kernel.shown import CHECKOUT, ENDS, ENTRY, PARTLY, end_of, functions, load, names_in_bt
from sframe_unwind.elf import opened
from tests.hanging import hang_after
from tools.debian_kernel import debian_kernel
from tools.kernel import Built, kernel

_SYSTEM_CALLS = "vfs_read vfs_open do_filp_open path_openat link_path_walk seq_read_iter do_task_stat fput"
_MEMORY = "handle_mm_fault do_mmap unmap_region clear_page kmem_cache_alloc kmem_cache_free"
_TIMERS = "do_nanosleep hrtimer_start_range_ns hrtimer_wakeup scheduler_tick update_process_times run_timer_softirq"
_TASKS = "try_to_wake_up __schedule finish_task_switch task_work_run rcu_core rcu_gp_init process_one_work"
_COMMON = " ".join((_SYSTEM_CALLS, _MEMORY, _TIMERS, _TASKS, "__do_softirq"))
_OF_MACHINE = {
    "arm64": "do_el0_svc do_mem_abort gic_handle_irq ret_to_user arch_cpu_idle cpu_do_idle",
    "amd64": "do_syscall_64 exc_page_fault sysvec_apic_timer_interrupt syscall_exit_to_user_mode default_idle_call"
    " native_safe_halt sysvec_reschedule_ipi smpboot_thread_fn",
    "s390x": "__do_syscall __do_pgm_check do_dat_exception do_ext_irq do_IRQ default_idle_call do_idle",
}
INNER = "previous frame inner to this frame"
"""The reason that GDB gives if it ends a stack that continues at lower addresses."""
WITHOUT_SYMBOL = {"return_lpswe", "??"}
"""Code of s390x in no file: debuggers have no name for it, and the plugin for LLDB has none either."""
FUNCTIONS = {machine: f"{_COMMON} {more}".split() for machine, more in _OF_MACHINE.items()}
"""System calls, page faults, interrupts, softirqs, kernel threads and the idle task."""
_NEWER = {
    "scheduler_tick": "sched_tick",
    "kmem_cache_alloc": "kmem_cache_alloc_noprof",
    "do_filp_open": "do_file_open",
    "fput": "fput_close_sync",
}
"""What Linux 7.2 calls instead."""
SECONDS = hang_after(100)
POLL = 0.5
"""Seconds between two reads of the file that the debugger writes."""


class Stopped(NamedTuple):
    """A stop in kernel code."""

    where: str
    """The function of the breakpoint; empty: a stop at a random time."""
    innermost: str
    end: str
    text: str
    bt: tuple[str, ...]
    """The functions of the debugger's own backtrace, and for GDB the reason why it ends."""
    difference: str
    """The first frame that differs from the one without the plugin, also in variables; empty: none."""
    compared: int
    """Number of frames of the debugger alone that were compared."""
    elr: int | None
    """The register ELR_EL1, if an exception was not saved yet."""
    saved: int | None
    """The pc that the exception saved some instructions later."""

    @property
    def is_whole(self) -> bool:
        """Whether no frame differs, SFrame's walk ends correctly, and the debugger's backtrace at the same function."""
        if self.difference or self.elr != self.saved or self.end not in (*ENDS, PARTLY):
            return False
        names = names_in_bt(self.text)
        return bool(names) and (names[-1] in self.bt or names[-1] == self.innermost in WITHOUT_SYMBOL)


def stopped(line: str, machine: str, debugger: str) -> Stopped | None:
    """Return a stop; ``None``: it was in user space."""
    found = json.loads(line)
    if not found["in_kernel"]:
        return None
    # GDB 13 makes frames after the outermost one, and guesses in user space.
    bt = tuple(found["bt"] if debugger == "gdb-13" else found["bt"][-2:])
    alone, with_plugin = found["alone"], found["with_plugin"]
    known = next((number for number, one in enumerate(alone) if ENTRY[machine].search(one.partition("\n")[0])), None)
    if known is None:
        known = len(alone)
    pairs = zip(alone[:known], [*with_plugin, *[""] * known])
    different = next((f"{one}\n--- with the plugin:\n{other}" for one, other in pairs if one != other), "")
    text = found["sframe"]
    if machine == "s390x" and bt[-1].startswith(INNER):  # there, `sframe bt` continues without GDB
        bt = tuple(names_in_bt(text))
    return Stopped(
        where=found["where"],
        innermost=next(iter(functions(text)), "?"),
        end=end_of(text),
        text=text,
        bt=bt,
        difference=different,
        compared=known,
        elr=found.get("elr"),
        saved=found.get("saved"),
    )


def functions_of(machine: str, vmlinux: Path) -> list[str]:
    """Return the functions in which a kernel is stopped."""
    with opened(str(vmlinux)) as binary:
        has = {symbol.name for symbol in binary.symbols}
    return [_NEWER[name] if _NEWER.get(name) in has else name for name in FUNCTIONS[machine]]


def boot(machine: str, folder: Path, tree: Path | None) -> AbstractContextManager[Machine]:
    """Boot a machine."""
    if machine == "s390x":
        return booted_s390x(debian_kernel("bookworm/s390x"), folder, SECONDS)
    if machine == "amd64":
        return booted_debian(debian_kernel(), folder, SECONDS, "nokaslr")
    if tree is not None:
        built = Built(tree / "vmlinux", tree / "arch/arm64/boot/Image", tree / "initrd", tree)
        return booted(built, folder, SECONDS)
    return booted(kernel(), folder, SECONDS)


class Result:
    """The file to which the debugger appends the stops."""

    def __init__(self, path: Path, machine: str, debugger: str) -> None:
        self._path, self._machine, self._debugger = path, machine, debugger
        path.touch()

    def stops(self) -> list[Stopped | None]:
        """Return all stops; ``None`` for one in user space."""
        lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
        return [stopped(line, self._machine, self._debugger) for line in lines if line.endswith("\n")]

    def drop_rest(self) -> None:
        """Remove the last line if it is not whole, as where the debugger was ended."""
        text = self._path.read_text(encoding="utf-8")
        self._path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")

    def show_new(self, is_over: threading.Event) -> None:
        """Print each stop that is added from now on, until the debugger has ended."""
        with self._path.open(encoding="utf-8") as lines:
            number, rest = sum(1 for _ in lines), ""
            over = False
            while not over:
                over = is_over.wait(POLL)
                *whole, rest = (rest + lines.read()).split("\n")
                for line in whole:
                    number += 1
                    print(f"{number}: {_in_a_line(stopped(line, self._machine, self._debugger))}", flush=True)


def _in_a_line(stop: Stopped | None) -> str:
    if stop is None:
        return "in user space"
    where = stop.where or f"at a random time, in {stop.innermost}"
    return f"{where}: {len(functions(stop.text))} frames, {stop.end if stop.is_whole else 'elsewhere'}"


def remaining(stops: Sequence[Stopped | None], wanted: Sequence[str], each: int, at_random: int) -> dict[str, object]:
    """Return the stops of the plan that have not been made yet.

    :param stops: the stops of earlier runs.
    """
    done = Counter(one.where for one in stops if one is not None)
    functions_left = {name: each - done[name] for name in wanted if done[name] < each}
    return {"functions": functions_left, "random": max(0, at_random - done[""])}


def main(arguments: Sequence[str] | None = None) -> int:
    """Boot, stop and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", choices=FUNCTIONS, default="arm64")
    parser.add_argument("--debugger", choices=DEBUGGERS, default="gdb-18")
    parser.add_argument("--random", type=int, default=200)
    parser.add_argument("--each", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kept", type=Path, help="the file with the stops; one that exists is gone on with")
    parser.add_argument("--tree", type=Path, help="of another Linux for AArch64, in which it was built")
    parser.add_argument("--generate", action="store_true", help="unwind by SFrame that is made of the kernel's CFI")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name, boot(options.machine, Path(name), options.tree) as machine:
        wanted = functions_of(options.machine, machine.built.vmlinux)
        plan = Path(name) / "plan.json"
        path = (options.kept or Path(name) / "result.jsonl").absolute()
        result = Result(path, options.machine, options.debugger)
        result.drop_rest()
        before = result.stops()
        work = remaining(before, wanted, options.each, options.random)
        plan.write_text(json.dumps({**work, "seed": options.seed + len(before), "result": str(path)}), encoding="utf-8")
        os.environ["STOPS"] = str(plan)
        is_lldb = options.debugger == "lldb"
        stops_in = f"{CHECKOUT}/lab/kernel/stops_in_{'lldb' if is_lldb else 'gdb'}.py"
        generate = [f"{'' if is_lldb else 'set '}sframe generate on"] if options.generate else []
        commands = [load(options.debugger), *generate, f"{'command script import' if is_lldb else 'source'} {stops_in}"]
        is_over = threading.Event()
        shower = threading.Thread(target=result.show_new, args=(is_over,))
        shower.start()
        try:
            said = run(script(options.debugger, machine, *commands), SECONDS)
        finally:
            is_over.set()
            shower.join()
        everything = result.stops()
    assert everything, said
    stops = [one for one in everything if one is not None]
    report(stops, len(everything) - len(stops), wanted)
    at_random = sum(not one.where for one in stops)
    if at_random < options.random:
        print(f"{at_random} stops at random times, expected {options.random}: {said[-500:]}")
    return 0 if at_random >= options.random and all(one.is_whole for one in stops) else 1


def report(stops: list[Stopped], in_user_space: int, wanted: Sequence[str]) -> None:
    """Print the figures, and each stack with another end."""
    for title, part in (
        ("functions", [s for s in stops if s.where]),
        ("random times", [s for s in stops if not s.where]),
    ):
        ends = Counter(one.end if one.is_whole else "elsewhere" for one in part)
        names = {one.where or one.innermost for one in part}
        through = sum("<exception " in one.text for one in part)
        compared = sum(one.compared for one in part)
        print(
            f"{title}: {len(part)} stops, {len(names)} functions, {through} stacks through an exception,"
            f" {compared} frames compared with the debugger alone; {dict(ends)}"
        )
    print(f"in user space: {in_user_space}")
    begun = [one for one in stops if one.elr is not None]
    print(f"not saved yet: {len(begun)}, of which {sum(one.elr == one.saved for one in begun)} save ELR_EL1 as pc")
    print("not reached:", *sorted(set(wanted) - {one.where for one in stops}))
    for one in stops:
        if not one.is_whole:
            text = indent(f"{one.text}{one.difference}\n", "  ")
            print(f"\n{one.where or 'at a random time'}:\n{text}  debugger: {' '.join(one.bt)}")


if __name__ == "__main__":
    sys.exit(main())
