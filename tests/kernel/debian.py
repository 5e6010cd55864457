"""A kernel of Debian for AMD64: its ORC, and the kernel in QEMU under GDB and LLDB.  `make test-kernel` runs this.

Up to the function that switched to the interrupt stack, or to entry code, a debugger without the plugin is right: those
frames must be the same with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from sframe_unwind.process.drgn_kernel import open_dump
from sframe_unwind.verify import Plan, verify
from tests.kernel.driving import DEBUGGERS, at_stop, frames, places
from tests.kernel.dumps import compared, opened
from tests.kernel.machine import Machine, booted_debian, dump_memory
from tests.kernel.objtool import by_objtool, shown
from tests.kernel.shown import ENDS, TASK, USER, end_of, functions, load
from tools.debian_kernel import DebianKernel, debian_kernel

STOPS = {
    "vfs_read": (("ksys_read", "entry_SYSCALL_64"), (USER,)),
    "handle_mm_fault": (("exc_page_fault", "asm_exc_page_fault"), ENDS),
    "update_process_times": (("sysvec_apic_timer_interrupt", "asm_sysvec_apic_timer_interrupt"), ENDS),
    "rcu_gp_init": (("rcu_gp_kthread", "kthread", "ret_from_fork"), (TASK,)),
    "default_idle_call": (("do_idle",), (TASK,)),
}
"""Where to stop; functions that must be on the stack, from the innermost frame outward; how it may end."""
ENTRY = re.compile(r"\b((instr_|f?red_)?sysvec_\w+|asm_\w+|entry_SYSCALL_64|ret_from_fork|secondary_startup_64\w*)\b")


@pytest.fixture(scope="module")
def debian() -> DebianKernel:
    return debian_kernel()


@pytest.fixture(scope="module")
def machine(debian: DebianKernel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with booted_debian(debian, tmp_path_factory.mktemp("machine"), 1200, "nokaslr") as one:
        yield one


def test_orc_of_modules_is_that_of_objtool(debian: DebianKernel) -> None:
    entries = 0
    for module in debian.modules:
        found = shown(module)
        assert found == by_objtool(debian.objtool, module), module
        entries += len(found)
    assert len(debian.modules) > 50
    assert entries > 100_000


def test_orc_of_the_kernel_is_that_of_its_cfi(debian: DebianKernel) -> None:
    """What differs is code in which the compiler knows nothing of what assembly in it pushes (docs/kernel.md)."""
    found = verify(debian.vmlinux, Plan(dwarf=False, orc=True)).orc
    assert found is not None
    assert found.both > 40_000
    assert found.addresses_compared > 300_000
    assert len(found.disagreements) < found.addresses_compared / 500
    assert {one.what for one in found.disagreements} == {"cfa"}


@pytest.mark.parametrize("function", STOPS)
@pytest.mark.parametrize("name", DEBUGGERS)
def test_stop(name: str, function: str, machine: Machine) -> None:
    on_the_stack, ends = STOPS[function]
    alone, _, bt, by_sframe = at_stop(name, machine, function, "bt", load(name), "bt", "sframe bt")
    stack = functions(by_sframe)
    shown_in_bt = [re.sub(r"<exception (\w+)>", r"\1", one) for one in stack]
    wanted = iter(shown_in_bt)
    assert all(one in wanted for one in on_the_stack), by_sframe
    if name != "gdb-13":  # it goes on in user space
        assert end_of(by_sframe) in ends, by_sframe
        assert shown_in_bt[-1] in frames(name, bt)[-1], bt
    before, after = frames(name, alone), frames(name, bt)
    known = next(number for number, frame in enumerate(before) if ENTRY.search(frame))
    assert known
    assert after[:known] == before[:known]


DRIVEN = [(name, "vfs_read") for name in DEBUGGERS]
DRIVEN += [(name, "update_process_times") for name in DEBUGGERS if name != "lldb"]
"""LLDB without the plugin ends its batch with a SIGTRAP when it has finished a function of an interrupt here."""


@pytest.mark.parametrize(("name", "function"), DRIVEN)
def test_driving(name: str, function: str, machine: Machine) -> None:
    """The places where commands end are those without the plugin."""
    alone = places(name, machine, function)
    assert len(set(alone)) > 3
    assert places(name, machine, function, load(name)) == alone


@pytest.mark.parametrize("name", DEBUGGERS)
def test_tasks(name: str, machine: Machine) -> None:
    commands = ("sframe tasks", "sframe tasks vforker -blocked", "sframe bt -task 2")
    _, everything, blocked, kthreadd = at_stop(name, machine, "vfs_read", load(name), *commands)
    ends = re.findall(r"^end: (.*)$", everything, re.MULTILINE)
    assert len(ends) > 12
    assert set(ends) <= set(ENDS)
    assert "3 tasks with one stack:" in blocked.splitlines()
    assert "kernel_clone" in functions(blocked)
    assert end_of(blocked) == USER
    assert functions(kthreadd)[-2:] == ["kthreadd", "ret_from_fork"]
    assert end_of(kthreadd) == TASK


class Moved(NamedTuple):
    """A kernel that KASLR moved, with a module."""

    machine: Machine
    dump: str


@pytest.fixture(scope="module")
def moved(debian: DebianKernel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moved]:
    folder = tmp_path_factory.mktemp("moved")
    with booted_debian(debian, folder) as one:
        dump_memory(one, folder / "vmcore")
        yield Moved(one, str(folder / "vmcore"))


@pytest.mark.parametrize("name", ["gdb-18", "lldb"])
def test_a_kernel_that_was_moved(name: str, debian: DebianKernel, moved: Moved) -> None:
    found = open_dump(moved.dump, str(debian.vmlinux), ()).main_file
    assert found is not None
    distance = found[1]
    assert distance
    gdb = f"symbol-file {debian.vmlinux} -o {distance:#x}"
    lldb = f"target modules load --file {debian.vmlinux.name} --slide {distance:#x}"
    first = lldb if name == "lldb" else gdb
    commands = (load(name), "sframe bt", "sframe tasks reader")
    _, by_sframe, reader = at_stop(name, moved.machine, "update_process_times", *commands, first=(first,))
    assert "sysvec_apic_timer_interrupt" in functions(by_sframe)
    assert end_of(by_sframe) in ENDS
    assert "pipe_read" in functions(reader)
    assert end_of(reader) == USER


def test_each_stack_of_a_dump_is_that_of_drgn(debian: DebianKernel, moved: Moved) -> None:
    stacks = compared(*opened(moved.dump, str(debian.vmlinux)))
    assert len(stacks) > 40
    assert [(one.stack.title, one.own, one.drgn) for one in stacks if not one.is_same] == []
    assert {one.stack.end for one in stacks} == set(ENDS)
