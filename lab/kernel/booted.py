"""The kernel in QEMU under GDB and LLDB: `make test-kernel`.

`make test-all` has a part of this, in `tests/kernel/test_booted.py`.

Up to the first frame of entry code, a debugger without the plugin is right: those frames must be the same with it.
Further out, a debugger without the plugin stops or guesses; there, the tests check which functions are on the stack,
and its end.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.kernel.arm64 import (
    DEBUGGERS_OF_TEST_ALL,
    IRQ,
    STOPS,
    STOPS_OF_TEST_ALL,
    booted_arm64,
    check_dump_of_arm64,
    check_stop_of_arm64,
    check_tasks_of_arm64,
)
from lab.kernel.checks import check_a_condition, check_driving, check_modules, check_moved
from lab.kernel.driving import DEBUGGERS, at_stop, frames
from lab.kernel.machine import Machine, booted, dump_memory, run
from lab.kernel.shown import CHECKOUT, ENDS, PARTLY, TASK, end_of, functions, load
from sframe_unwind.cli import main
from tools.kernel import kernel, steps

ALL = [(name, function) for name in DEBUGGERS for function in STOPS]
IN_TEST_ALL = [(name, function) for name in DEBUGGERS_OF_TEST_ALL for function in STOPS_OF_TEST_ALL]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with booted_arm64(tmp_path_factory.mktemp("machine")) as one:
        yield one


@pytest.mark.parametrize(("name", "function"), [one for one in ALL if one not in IN_TEST_ALL])
def test_stop(name: str, function: str, machine: Machine) -> None:
    check_stop_of_arm64(name, function, machine)


@pytest.mark.parametrize("name", DEBUGGERS)
def test_anywhere(name: str, machine: Machine) -> None:
    """Attaching stops the kernel at a random place: in an interrupt handler, a system call or the idle task."""
    seen = 0
    for _ in range(8):
        _, by_sframe = at_stop(name, machine, None, load(name), "sframe bt")
        innermost = re.search(r"^#0 +0x([0-9a-f]{16})", by_sframe, re.MULTILINE)
        assert innermost, by_sframe
        in_kernel = int(innermost[1], 16) >> 63  # and not in its program
        if in_kernel:
            seen += 1
            assert end_of(by_sframe) in (*ENDS, PARTLY), by_sframe
    assert seen


def test_tasks(machine: Machine) -> None:
    check_tasks_of_arm64("gdb-13", machine)


@pytest.mark.parametrize("name", ["gdb-18", "gdb-13"])
def test_registers_of_the_interrupted_function(name: str, machine: Machine) -> None:
    """GDB knows all registers of the function that an exception interrupted: they are those of pt_regs in memory."""
    outward = "while f.type() != gdb.SIGTRAMP_FRAME or f.name() == 'call_on_irq_stack': f = f.older()"
    compare = "registers = f.read_register('sp').cast(gdb.lookup_type('struct pt_regs').pointer()); o = f.older()"
    pairs = ", ".join(f"(o.read_register('{name}'), registers['{name}'])" for name in ("sp", "pc"))
    pairs += "".join(f", (o.read_register('x{number}'), registers['regs'][{number}])" for number in range(31))
    code = f"f = gdb.newest_frame()\n{outward}\n{compare}\nprint([(int(a) - int(b)) % 2**64 for a, b in ({pairs})])"
    in_kernel = ("thbreak el1h_64_irq_handler", "continue")
    commands = (load(name), "bt 1", f"python exec({code!r})")
    *_, differences = at_stop(name, machine, "scheduler_tick", *commands, first=in_kernel)
    assert differences.strip() == str([0] * 33)


def test_the_commands_of_the_page(machine: Machine) -> None:
    command = steps().debug.replace("127.0.0.1:1234", f"127.0.0.1:{machine.port}")
    program, *arguments, vmlinux = shlex.split(command)
    assert (program, vmlinux) == (".venv/bin/gdb", "linux/vmlinux")
    arguments = [argument.replace("gdb_plugin/", f"{CHECKOUT}/gdb_plugin/") for argument in arguments]
    said = run(
        [str(Path(sys.executable).with_name("gdb")), "-nx", "-q", "-batch", *arguments, str(machine.built.vmlinux)]
    )
    assert re.search(r"<exception el1h_64_irq>|\bel0t_64_irq\b", said)


def test_the_dump_on_the_command_line(machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = check_dump_of_arm64(machine, tmp_path)
    command = ["backtrace", "--vmcore", str(dump), "--exe", str(machine.built.vmlinux), "--json"]
    assert main(command) == 0
    shown = json.loads(capsys.readouterr().out)
    names = [thread["name"] for thread in shown["threads"]]
    assert names.count("vforker") == 6
    assert {"init", "kthreadd", "swapper/0"} <= set(names)
    assert [module["path"] for module in shown["modules"]] == [str(machine.built.vmlinux)]


DRIVEN = {
    "vfs_read": "a system call",
    "update_process_times": "the timer's interrupt",
    "rcu_gp_init": "a kernel thread",
}


@pytest.mark.parametrize("function", DRIVEN, ids=DRIVEN.values())
@pytest.mark.parametrize("name", DEBUGGERS)
def test_driving(name: str, function: str, machine: Machine) -> None:
    check_driving(name, function, machine)


@pytest.mark.parametrize("name", ["gdb-18", "gdb-13"])
def test_a_condition_on_the_callers(name: str, machine: Machine) -> None:
    """GDB evaluates the condition with frames of the plugin."""
    condition = 'tbreak vfs_read if $_any_caller_is("no_such_function", 4) || $_any_caller_is("el0t_64_sync", 20)'
    *_, by_sframe = at_stop(name, machine, "do_task_stat", load(name), condition, "continue", "sframe bt")
    assert functions(by_sframe)[0] == "vfs_read"


@pytest.mark.parametrize("name", DEBUGGERS)
def test_a_condition(name: str, machine: Machine) -> None:
    check_a_condition(name, machine)


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with booted(kernel(), tmp_path_factory.mktemp("moved"), is_moved=True) as one:
        yield one


@pytest.mark.parametrize("name", DEBUGGERS)
def test_a_kernel_that_was_moved(name: str, moved: Machine, tmp_path: Path) -> None:
    dump_memory(moved, tmp_path / "vmcore")
    check_moved(name, moved, tmp_path / "vmcore", "scheduler_tick", IRQ)


@pytest.fixture(scope="module")
def with_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Path, int]]:
    """Yield a machine that has loaded a module, the module's file, and the address of its code by drgn."""
    built, folder = kernel(), tmp_path_factory.mktemp("module")
    path = built.folder / "probe.ko"
    with booted(built, folder, module=path) as machine:
        dump_memory(machine, folder / "vmcore")
        sections = check_modules(folder / "vmcore", built.vmlinux, path)
        assert {".text", ".sframe"} <= sections.keys()
        yield machine, path, sections[".text"]


def symbols_of_a_module(name: str, path: Path, text: int) -> tuple[str, ...]:
    """Return the commands that add a module to a debugger, by the address of the module's code."""
    if name == "lldb":
        return f"target modules add {path}", f"target modules load --file {path.name} .text {text:#x}"
    return (f"add-symbol-file {path} {text:#x}",)


def check_stack_in_module(by_sframe: str) -> None:
    unwinders = [line.split()[-1] for line in by_sframe.splitlines() if line.startswith("#")]
    assert unwinders[:3] == ["sframe"] * 3, by_sframe
    assert "call_timer_fn" in functions(by_sframe)[3:], by_sframe
    assert end_of(by_sframe) in ENDS


@pytest.mark.parametrize("name", DEBUGGERS)
def test_a_module(name: str, with_module: tuple[Machine, Path, int]) -> None:
    """The debugger is given only the address of its code; the plugin finds its SFrame."""
    machine, path, text = with_module
    first = symbols_of_a_module(name, path, text)
    _, bt, by_sframe = at_stop(name, machine, "probe_inner", load(name), "bt", "sframe bt", first=first)
    check_stack_in_module(by_sframe)
    assert functions(by_sframe)[:3] == ["probe_inner", "probe_outer", "probe_expired"]
    assert functions(by_sframe)[-1] in frames(name, bt)[-1], bt


@pytest.mark.parametrize("name", ["gdb-18", "gdb-13"])
def test_a_module_that_lx_symbols_loads(name: str, with_module: tuple[Machine, Path, int]) -> None:
    """lx-symbols of Linux 6.1 takes the start of the module for the start of its code, but PLT sections are there.

    So the first function, ``probe_inner``, has the name of another one.
    """
    machine, path, text = with_module
    first = (f"source {path.parent}/vmlinux-gdb.py", f"lx-symbols {path.parent}")
    said, by_sframe = at_stop(name, machine, f"*{text:#x}", load(name), "sframe bt", first=first)
    check_stack_in_module(by_sframe)
    assert "probe.ko: its .text is at" in said


@pytest.fixture(scope="module")
def overflown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Path, int]]:
    """A machine that is in `panic` after a stack overflow in a module, the module's file, and its code's address."""
    built, folder = kernel(), tmp_path_factory.mktemp("overflow")
    path = built.folder / "overflow.ko"
    with booted(built, folder, module=path, ready="end Kernel panic") as machine:
        dump_memory(machine, folder / "vmcore")
        yield machine, path, check_modules(folder / "vmcore", built.vmlinux, path)[".text"]


@pytest.mark.parametrize("name", DEBUGGERS)
def test_a_stack_overflow(name: str, overflown: tuple[Machine, Path, int]) -> None:
    """The handler runs on another stack; the frames after the exception are on the task's stack, up to its start."""
    machine, path, text = overflown
    first = symbols_of_a_module(name, path, text)
    _, bt, by_sframe = at_stop(name, machine, "__const_udelay", load(name), "bt", "sframe bt", first=first)
    shown = functions(by_sframe)
    at = shown.index("<exception __bad_stack>")
    assert shown[at - 2 : at] == ["panic_bad_stack", "handle_bad_stack"]
    assert shown[at + 1 :].count("recurses") > 10
    assert shown[-3:] == ["thread", "kthread", "ret_from_fork"]
    assert end_of(by_sframe) == TASK
    assert shown[-1] in frames(name, bt)[-1], bt
