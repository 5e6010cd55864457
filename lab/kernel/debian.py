"""Debian's kernels for AMD64: their ORC, and the kernels in QEMU under GDB and LLDB.  `make test-kernel` runs this.

The ORC of the second one has another layout.

Up to the function that switched to the interrupt stack, or to entry code, a debugger without the plugin is right: those
frames must be the same with it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lab.kernel.checks import (
    Stop,
    check_a_condition,
    check_driving,
    check_dump,
    check_inner_frames,
    check_moved,
    check_stop,
    check_tasks,
    outermost,
)
from lab.kernel.driving import DEBUGGERS, at_stop, frames
from lab.kernel.machine import Machine, booted_debian, dump_memory
from lab.kernel.objtool import by_objtool, shown
from lab.kernel.shown import ENDS, TASK, USER, end_of, functions, load, names_in_bt
from sframe_unwind.address import KERNEL_HALF
from sframe_unwind.verify import Plan, verify
from tests.hanging import HANG
from tools.debian_kernel import DebianKernel, debian_kernel

STOPS = {
    "vfs_read": Stop(("ksys_read", "entry_SYSCALL_64"), (USER,)),
    "handle_mm_fault": Stop(("exc_page_fault", "asm_exc_page_fault"), ENDS),
    "update_process_times": Stop(("sysvec_apic_timer_interrupt", "asm_sysvec_apic_timer_interrupt"), ENDS),
    "rcu_gp_init": Stop(("rcu_gp_kthread", "kthread", "ret_from_fork"), (TASK,)),
    "default_idle_call": Stop(("do_idle",), (TASK,)),
}


@pytest.fixture(scope="module", params=["bookworm/amd64", "trixie/amd64"])
def debian(request: pytest.FixtureRequest) -> DebianKernel:
    return debian_kernel(request.param)


@pytest.fixture(scope="module")
def machine(debian: DebianKernel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with booted_debian(debian, tmp_path_factory.mktemp("machine"), more="nokaslr") as one:
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
    """docs/kernel-reference.md has the differences: a compiler does not know the words that inline assembly pushes."""
    found = verify(debian.vmlinux, Plan(dwarf=False, orc=True)).orc
    assert found is not None
    assert found.both > 40_000
    assert found.addresses_compared > 300_000
    assert len(found.disagreements) < found.addresses_compared / 500
    assert {one.what for one in found.disagreements} == {"cfa"}


@pytest.mark.parametrize("function", STOPS)
@pytest.mark.parametrize("name", DEBUGGERS)
def test_stop(name: str, function: str, machine: Machine) -> None:
    check_stop(name, machine, "amd64", function, STOPS[function], has_entry=True)


@pytest.mark.parametrize("name", DEBUGGERS)
def test_the_first_instruction_of_an_exception(name: str, machine: Machine) -> None:
    function = "asm_exc_page_fault" if name == "lldb" else "*asm_exc_page_fault"
    _, bt, by_sframe = at_stop(name, machine, function, load(name), "bt", "sframe bt")
    assert end_of(by_sframe) in ENDS
    assert names_in_bt(by_sframe)[0] == "asm_exc_page_fault"
    assert len(frames(name, bt)) >= len(functions(by_sframe))
    if end_of(by_sframe) == USER:
        assert names_in_bt(by_sframe)[-1] in outermost(name, bt)


@pytest.mark.parametrize("name", DEBUGGERS)
def test_assembly_outside_of_entry_code(name: str, machine: Machine) -> None:
    """It has no CFI, and pushes registers."""
    first = "nexti" if name == "lldb" else "stepi"
    function = "__switch_to_asm" if name == "lldb" else "*__switch_to_asm"
    *_, by_sframe, bt = at_stop(name, machine, function, load(name), *[first] * 3, "sframe bt", "bt")
    assert functions(by_sframe)[:2] == ["__switch_to_asm", "__schedule"]
    assert end_of(by_sframe) in ENDS
    in_bt = frames(name, bt)
    assert any("__schedule" in one for one in in_bt[1:3]), bt
    assert any(names_in_bt(by_sframe)[-1] in one for one in in_bt), bt


@pytest.mark.parametrize("name", DEBUGGERS)
def test_a_jump_to_an_address_in_a_register(name: str, machine: Machine) -> None:
    """Before Linux 6.4, ORC marks this code as the end of the stack."""
    function = "__x86_indirect_thunk_rax"
    where = function if name == "lldb" else f"*{function}"
    alone, _, bt, by_sframe = at_stop(name, machine, where, "bt", load(name), "bt", "sframe bt")
    assert len(functions(by_sframe)) > 2, by_sframe
    assert end_of(by_sframe) in ENDS
    check_inner_frames(name, "amd64", alone, bt)


DRIVEN = [(name, function) for name in DEBUGGERS for function in ("vfs_read", "rcu_gp_init")]
DRIVEN += [(name, "update_process_times") for name in DEBUGGERS if name != "lldb"]
"""LLDB without the plugin ends its batch with a SIGTRAP after `finish` from a function of an interrupt here."""


@pytest.mark.parametrize(("name", "function"), DRIVEN)
def test_driving(name: str, function: str, machine: Machine) -> None:
    check_driving(name, function, machine)


@pytest.mark.parametrize("name", DEBUGGERS)
def test_a_condition(name: str, machine: Machine) -> None:
    check_a_condition(name, machine)


@pytest.mark.parametrize("name", DEBUGGERS)
def test_tasks(name: str, machine: Machine) -> None:
    _, _, kthreadd = check_tasks(name, machine, 13)
    assert [one for one in functions(kthreadd) if not one.endswith("_asm")][-2:] == ["kthreadd", "ret_from_fork"]


UTSNAME = 12
"""Offset of ``struct new_utsname`` in the header of a kdump-compressed dump, in bytes."""


class Moved(NamedTuple):
    """A kernel that KASLR moved, with a module."""

    machine: Machine
    dump: str
    compressed: str


@pytest.fixture(scope="module")
def moved(debian: DebianKernel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moved]:
    folder = tmp_path_factory.mktemp("moved")
    with booted_debian(debian, folder) as one:
        dump_memory(one, folder / "vmcore")
        dump_memory(one, folder / "flat", "kdump-zlib")
        yield Moved(one, str(folder / "vmcore"), str(folder / "flat"))


@pytest.mark.parametrize("name", ["gdb-18", "lldb"])
def test_a_kernel_that_was_moved(name: str, moved: Moved) -> None:
    check_moved(name, moved.machine, moved.dump, "update_process_times", "sysvec_apic_timer_interrupt")


def rearranged(flat: str, path: Path) -> str:
    """Write a kdump-compressed dump like QEMU's, with the name of the system; return its path."""
    with Path(flat).open("rb") as stream:
        subprocess.run(["makedumpfile", "-R", str(path)], stdin=stream, check=True, timeout=HANG, capture_output=True)
    names = (b"Linux", b"guest", b"6.0", b"#1", b"x86_64", b"(none)")
    with path.open("r+b") as dump:
        dump.seek(UTSNAME)
        dump.write(b"".join(name.ljust(65, b"\0") for name in names))
    return str(path)


@pytest.mark.parametrize("is_compressed", [False, True], ids=["ELF", "kdump"])
def test_each_stack_of_a_dump_is_that_of_drgn(
    is_compressed: bool, debian: DebianKernel, moved: Moved, tmp_path: Path
) -> None:
    dump = rearranged(moved.compressed, tmp_path / "vmcore") if is_compressed else moved.dump
    stacks = check_dump(dump, debian.vmlinux, 41)
    in_kernel = [one for one in stacks if one.own[0][0] >= KERNEL_HALF]
    assert len(in_kernel) >= len(stacks) - 2  # a processor can execute user space
    assert {one.stack.end for one in in_kernel} == set(ENDS)
