"""Debian's kernel for s390x in QEMU under GDB and LLDB.  `make test-kernel` runs this."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.kernel.checks import Stop, check_a_condition, check_driving, check_dump, check_stop, check_tasks
from lab.kernel.driving import at_stop
from lab.kernel.machine import Machine, booted_s390x, dump_memory
from lab.kernel.shown import ENDS, TASK, USER, end_of, functions, load, names_in_bt
from tools.debian_kernel import debian_kernel

GDB = "gdb-18"
STOPS = {
    "vfs_read": Stop(("ksys_read", "system_call"), (USER,)),
    "handle_mm_fault": Stop(("do_dat_exception", "__do_pgm_check", "pgm_check_handler"), ENDS),
    "do_ext_irq": Stop(("ext_int_handler",), ENDS),
    "rcu_gp_init": Stop(("rcu_gp_kthread", "kthread", "__ret_from_fork", "ret_from_fork"), (TASK,)),
    "default_idle_call": Stop(("do_idle",), (TASK,)),
}
REGISTERS = "-regs pswa=$pswa,r15=$r15,r14=$r14,r11=$r11"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with booted_s390x(debian_kernel("bookworm/s390x"), tmp_path_factory.mktemp("machine")) as one:
        yield one


@pytest.mark.parametrize("function", STOPS)
@pytest.mark.parametrize("name", [GDB, "gdb-13", "lldb"])
def test_stop(name: str, function: str, machine: Machine) -> None:
    check_stop(name, machine, "s390x", function, STOPS[function], has_entry=False)


def test_the_asynchronous_stack(machine: Machine) -> None:
    """``sframe bt`` continues through it even if GDB takes the task's stack, at lower addresses, for a corrupt one."""
    commands = (load(GDB), f"sframe bt {REGISTERS}", "sframe bt")
    alone, _, by_core, by_sframe = at_stop(GDB, machine, "do_IRQ", "bt", *commands)
    assert "do_irq_async" in alone
    assert "_handler" not in alone
    shown = names_in_bt(by_core)
    assert shown[:2] == ["do_IRQ", "do_irq_async"]
    assert {"ext_int_handler", "io_int_handler"} & set(shown)
    assert end_of(by_core) in ENDS, by_core
    assert functions(by_sframe) == functions(by_core)
    assert end_of(by_sframe) == end_of(by_core)


def test_registers_of_the_interrupted_function(machine: Machine) -> None:
    """The registers are those of pt_regs in memory."""
    outward = "while f.type() != gdb.SIGTRAMP_FRAME: f = f.older()"
    at = "(int(f.read_register('r15')) + gdb.lookup_type('struct stack_frame').sizeof)"
    compare = f"regs = gdb.Value({at}).cast(gdb.lookup_type('struct pt_regs').pointer()); o = f.older()"
    pairs = "(o.read_register('pswa'), regs['psw']['addr'])"
    pairs += "".join(f", (o.read_register('r{number}'), regs['gprs'][{number}])" for number in range(16))
    code = f"f = gdb.newest_frame()\n{outward}\n{compare}\nprint([(int(a) - int(b)) % 2**64 for a, b in ({pairs})])"
    for _ in range(8):
        answers = at_stop(GDB, machine, "do_ext_irq", load(GDB), "sframe bt", f"python exec({code!r})")
        if "<exception " in answers[1]:  # and user space was not interrupted
            assert answers[2].strip() == str([0] * 17)
            return
    pytest.fail("no exception in the kernel in 8 stops")


@pytest.mark.parametrize("function", ["vfs_read", "update_process_times", "rcu_gp_init"])
def test_driving(function: str, machine: Machine) -> None:
    check_driving(GDB, function, machine)


def test_a_condition(machine: Machine) -> None:
    check_a_condition(GDB, machine)


def test_tasks(machine: Machine) -> None:
    _, _, kthreadd = check_tasks(GDB, machine, 13)
    assert functions(kthreadd)[-3:] == ["kthreadd", "__ret_from_fork", "ret_from_fork"]


def test_each_stack_of_a_dump_is_that_of_drgn(machine: Machine, tmp_path: Path) -> None:
    dump_memory(machine, tmp_path / "vmcore")
    stacks = check_dump(tmp_path / "vmcore", machine.built.vmlinux, 41)
    ends = [one.stack.end for one in stacks]
    assert {*ENDS} <= set(ends) <= {*ENDS, "its registers are not in the dump"}
    assert ends.count("its registers are not in the dump") <= 2  # of the processors
