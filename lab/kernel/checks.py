"""Checks for the kernels of all machines: at stops, of tasks, of commands that drive them, and of their dumps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lab.kernel.driving import at_stop, frames, hits, places
from lab.kernel.dumps import Compared, compared, opened
from lab.kernel.machine import Machine
from lab.kernel.shown import ENDS, ENTRY, TASK, USER, end_of, functions, load, names_in_bt
from sframe_unwind.arch import of_elf
from sframe_unwind.kernel.linux import Kernel
from sframe_unwind.kernel.modules import KernelModules, module_name
from sframe_unwind.kernel.types import Types
from sframe_unwind.process.drgn_kernel import open_dump
from sframe_unwind.process.elf_file import ElfFile

_TRIES = 8
"""Maximum number of times that the kernel is driven without the plugin."""


class Stop(NamedTuple):
    """The requirements for the stack at a stop in a function."""

    on_the_stack: tuple[str, ...]
    """Patterns of functions that must be on the stack, in this order from the innermost frame outward; there can be
    others between them."""
    ends: tuple[str, ...]
    """The stack must end with one of these texts."""


def outermost(name: str, bt: str) -> str:
    """Return the outermost frame of a debugger's own ``bt``; GDB 13 can show one more, with the pc 0."""
    shown = frames(name, bt)
    return shown[-2] if name == "gdb-13" and shown[-1] == "?? ()" else shown[-1]


def check_stack(shown: Sequence[str], by_sframe: str, stop: Stop) -> None:
    """Check the output of ``sframe bt`` at a stop.

    :param shown: the functions in the output.
    """
    left = iter(shown)
    assert all(any(re.fullmatch(one, name) for name in left) for one in stop.on_the_stack), by_sframe
    assert end_of(by_sframe) in stop.ends, by_sframe


def check_inner_frames(name: str, architecture: str, alone: str, bt: str, *, has_entry: bool = True) -> None:
    """Check that the frames up to entry code are those of the debugger without the plugin.

    :param architecture: the key in :data:`lab.kernel.shown.ENTRY`.
    :param alone: output of ``bt`` without the plugin.
    :param bt: output of ``bt`` with the plugin.
    :param has_entry: whether the debugger alone must reach entry code.
    """
    before, after = frames(name, alone), frames(name, bt)
    entries = (number for number, frame in enumerate(before) if ENTRY[architecture].search(frame))
    known = next(entries, None)
    assert known is not None or not has_entry, alone
    known = len(before) if known is None else known
    assert known
    assert after[:known] == before[:known]


def check_stop(name: str, machine: Machine, architecture: str, function: str, stop: Stop, *, has_entry: bool) -> None:
    """Check the stacks at a stop; see :func:`check_inner_frames`."""
    alone, _, bt, by_sframe = at_stop(name, machine, function, "bt", load(name), "bt", "sframe bt")
    shown = names_in_bt(by_sframe)
    check_stack(shown, by_sframe, stop)
    assert shown[-1] in outermost(name, bt), bt
    check_inner_frames(name, architecture, alone, bt, has_entry=has_entry)


def check_tasks(name: str, machine: Machine, at_least: int, *more: str) -> list[str]:
    """Check the output about tasks.

    :param at_least: minimum number of stacks of tasks.
    :param more: further commands.
    :returns: the output for all tasks, for the blocked ones, for ``kthreadd``, and of the further commands.
    """
    commands = ("sframe tasks", "sframe tasks vforker -blocked", "sframe bt -task 2", *more)
    answers = at_stop(name, machine, "vfs_read", load(name), *commands)[1:]
    everything, blocked, kthreadd = answers[:3]
    ends = re.findall(r"^end: (.*)$", everything, re.MULTILINE)
    assert len(ends) >= at_least
    assert set(ends) <= set(ENDS)
    assert "3 tasks with one stack:" in blocked.splitlines()
    assert "kernel_clone" in functions(blocked)
    assert end_of(blocked) == USER
    assert end_of(kthreadd) == TASK
    return answers


def check_driving(name: str, function: str, machine: Machine) -> None:
    """Check that commands that drive the kernel end at places at which they also end without the plugin.

    The kernel does not always take the same way, because of timer interrupts: it is then driven again.
    """
    alone = [places(name, machine, function)]
    assert len(set(alone[0])) > 3
    with_plugin = places(name, machine, function, load(name))
    while with_plugin not in alone and len(alone) < _TRIES:
        alone.append(places(name, machine, function))
    assert with_plugin in alone


def check_a_condition(name: str, machine: Machine) -> None:
    """Check that a breakpoint with a condition stops at the same place as without the plugin."""
    alone = hits(name, machine)
    assert {one.partition(":")[0] for one in alone} == {"vfs_read"}
    assert [one.split()[1] for one in alone] == ["256"] * 3
    assert hits(name, machine, load(name)) == alone


def check_moved(name: str, machine: Machine, dump: str | Path, function: str, on_the_stack: str) -> None:
    """Check the stacks of a kernel that KASLR moved, in a debugger that knows the distance.

    :param dump: dump of the machine.
    :param on_the_stack: a pattern of functions that must be on the stack at a stop in the function.
    """
    vmlinux = machine.built.vmlinux
    found = open_dump(str(dump), str(vmlinux), ()).main_file
    assert found is not None
    distance = found[1]
    assert distance
    gdb = f"symbol-file {vmlinux} -o {distance:#x}"
    lldb = f"target modules load --file {vmlinux.name} --slide {distance:#x}"
    first = lldb if name == "lldb" else gdb
    commands = (load(name), "bt", "sframe bt", "sframe tasks reader")
    _, bt, by_sframe, reader = at_stop(name, machine, function, *commands, first=(first,))
    assert any(re.fullmatch(on_the_stack, one) for one in functions(by_sframe)), by_sframe
    assert end_of(by_sframe) in ENDS
    assert names_in_bt(by_sframe)[-1] in frames(name, bt)[-1], bt
    assert "pipe_read" in functions(reader)
    assert end_of(reader) == USER


def check_modules(dump: str | Path, vmlinux: Path, path: Path) -> dict[str, int]:
    """Check that the sections of a module in a dump are at drgn's addresses, and return their addresses.

    :param path: path of the module's file.
    """
    program = open_dump(str(dump), str(vmlinux), (str(path),))
    arch = of_elf(*ElfFile(str(vmlinux)).machine)
    assert arch is not None
    assert arch.linux_kernel is not None
    kernel = Kernel(
        arch=arch,
        facts=arch.linux_kernel,
        places=(),
        types=Types(program.structure),
        symbol=program.symbol,
        read=program.read,
    )
    name = module_name(path.name)
    (by_drgn,) = [module.addresses for module in program.modules() if module.name == name]
    own = KernelModules(kernel).sections(name or "")
    assert own == {section: address for section, address in by_drgn.items() if not section.startswith(".init")}
    return own


def check_dump(dump: str | Path, vmlinux: Path, at_least: int) -> list[Compared]:
    """Check that the stacks of a dump are those of drgn, and return them.

    :param at_least: minimum number of stacks.
    """
    stacks = compared(*opened(str(dump), str(vmlinux)))
    assert len(stacks) >= at_least
    assert [(one.stack.title, one.own, one.drgn) for one in stacks if not one.is_same] == []
    return stacks
