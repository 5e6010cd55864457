"""Stacks of tasks in a crash dump of a kernel made by hand, and the messages about missing parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.elf import opened
from sframe_unwind.errors import FileError
from sframe_unwind.process.stacks import named
from sframe_unwind.process.vmcore import LoadedModule, VmcoreTarget
from sframe_unwind.report.stack import Stack
from tests.elf.objects import run, tools_for
from tests.kernel.fake import ARCH
from tests.kernel.fake_dump import MOVED, SOURCE, STACK, Dump, build_kernel, waiting

LR = 30


@pytest.fixture(scope="module")
def vmlinux(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_kernel(tmp_path_factory.mktemp("kernel"))


@pytest.fixture
def dump(vmlinux: Path) -> Dump:
    return Dump(vmlinux)


def stacks(dump: Dump, path: str = "vmcore") -> list[Stack]:
    target = VmcoreTarget(path, dump, pytest.fail)
    return [named(target.unwind(thread), target.code) for thread in target.threads]


def test_tasks_that_wait(dump: Dump) -> None:
    """A kernel thread, and a task in a system call, of a kernel that was moved."""
    kthread = waiting(dump, 0, "worker", "ret_from_fork")
    in_call = waiting(dump, 1, "el0t_64_sync_handler", "el0t_64_sync")
    dump.listed(kthread, in_call)
    first, second = stacks(dump)
    assert first.title == 'Thread 0 "task0", D'
    assert [frame.function for frame in first.frames] == ["schedule", "worker", "ret_from_fork"]
    assert [frame.unwinder for frame in first.frames] == ["sframe", "sframe", "kernel"]
    assert first.end == "start of the task"
    assert [frame.function for frame in second.frames] == ["schedule", "el0t_64_sync_handler", "el0t_64_sync"]
    assert second.end == "entry from user space"
    assert first.frames[0].address == dump.after_call("schedule") - MOVED


def test_a_task_that_ran_in_a_leaf_function_without_cfi(dump: Dump) -> None:
    """A guess by frame pointers would leave its caller out."""
    dump.frames(STACK + 0x100, "ret_from_fork")
    dump.listed(dump.task(0, "task", on_cpu=True, sp=0, pc=0, fp=0))
    pc, caller = dump.after_call("__switch_to") - 12, dump.after_call("worker")
    dump.running = {ARCH.pc: pc, ARCH.sp: STACK + 0x100, ARCH.fp: STACK + 0x100, LR: caller}
    (stack,) = stacks(dump)
    assert [frame.function for frame in stack.frames] == ["__switch_to", "worker", "ret_from_fork"]
    assert [frame.unwinder for frame in stack.frames] == ["kernel", "sframe", "kernel"]


def test_a_task_that_ran_when_it_was_interrupted(dump: Dump) -> None:
    """The registers are those of the processor, and those of the exception's caller are in pt_regs."""
    sp = STACK + 0x100
    at = dump.frames(sp, "el1h_64_irq")
    dump.frames(at + 336, "ret_from_fork")
    registers = {29: at + 336, 31: at + 336, 32: dump.after_call("worker")}
    for number, value in registers.items():
        offset = {29: 8 * 29, 31: 248, 32: 256}[number]
        dump.memory.write(at + offset, value)
    dump.memory.write(sp, at + 304)  # the frame pointer of the entry code: its record in pt_regs
    task = dump.task(0, "swapper/0", on_cpu=True, sp=0, pc=0, fp=0)
    dump.listed(task)
    dump.running = {ARCH.pc: dump.after_call("el1h_64_irq_handler"), ARCH.sp: sp, ARCH.fp: sp}
    (stack,) = stacks(dump)
    assert stack.title == 'Thread 0 "swapper/0", D, on a processor'
    names = ["el1h_64_irq_handler", "<exception el1h_64_irq>", "worker", "ret_from_fork"]
    assert [frame.function for frame in stack.frames] == names
    assert [frame.unwinder for frame in stack.frames] == ["sframe", "pt_regs", "sframe", "kernel"]
    assert stack.end == "start of the task"


@pytest.mark.parametrize(
    ("path", "end"),
    [
        ("vmcore", "its registers are not in the dump"),
        ("/proc/kcore", "it runs, with its registers in a processor"),
    ],
)
def test_a_task_without_registers(dump: Dump, path: str, end: str) -> None:
    dump.listed(dump.task(0, "swapper/0", on_cpu=True, sp=0, pc=0, fp=0))
    (stack,) = stacks(dump, path)
    assert (stack.frames, stack.end) == ((), end)


def test_code_outside_the_kernel(dump: Dump) -> None:
    """Such as code of a module without a file."""
    dump.memory.fill(0xFFFFFFC000001000, 16)
    sp = STACK
    dump.listed(dump.task(0, "task", on_cpu=False, sp=sp, pc=0xFFFFFFC000001008, fp=sp))
    (stack,) = stacks(dump)
    assert stack.end == "no unwind data: the address is in no code of the kernel or of a module with a file"


def test_modules_without_a_file_are_reported(dump: Dump) -> None:
    dump.listed(waiting(dump, 0, "ret_from_fork"))
    dump.loaded = [LoadedModule("ext4", "", {".text": 1}, ()), LoadedModule("jbd2", "", {}, ())]
    target = VmcoreTarget("vmcore", dump, pytest.fail)
    assert target.missing == ["vmcore: no file of the modules ext4, jbd2 (--modules FOLDER has them)"]


@pytest.mark.parametrize("ending", [".ko", ".ko.debug", ""])
def test_a_module_has_its_sections_where_the_kernel_loaded_them(dump: Dump, vmlinux: Path, ending: str) -> None:
    """The kernel relocates the SFrame of a module, so the section in memory counts, also where there is no file.

    A debug file has the sizes of the sections, but not their contents.
    """
    target = vmlinux.with_name("module.ko")
    source = vmlinux.with_name("module.s")
    source.write_text(
        SOURCE.partition("    function _start")[0] + "    framed in_module, elsewhere\n", encoding="ascii"
    )
    run(tools_for("aarch64", 3) / "as", "--gsframe", source, "-o", target)
    text, sframe = 0xFFFFFFC000100000, 0xFFFFFFC000102000
    with opened(str(target)) as binary:
        code, section = binary.named(".text"), binary.named(".sframe")
        assert code is not None
        assert section is not None
        data = bytearray(binary.contents(section))
        data[28:36] = (text - sframe - 28).to_bytes(8, "little", signed=True)  # the value that the relocation writes
        dump.memory.put(text, binary.contents(code))
        dump.memory.put(sframe, bytes(data))
    run(tools_for("aarch64", 3) / "objcopy", "--only-keep-debug", target, target.with_suffix(".ko.debug"))
    path = str(target.with_suffix(ending)) if ending else ""
    ranges = ((text, sframe + 0x1000),)
    dump.memory.fill(sframe + len(data), 0x1000 - len(data))
    dump.loaded = [LoadedModule("module", path, {".text": text, ".sframe": sframe}, ranges)]
    sp = STACK
    dump.frames(sp, "ret_from_fork")
    dump.listed(dump.task(0, "task", on_cpu=False, sp=sp, pc=text + 12, fp=sp))
    (stack,) = stacks(dump)
    assert [frame.module.rpartition("/")[2] for frame in stack.frames] == ["module", "vmlinux"]
    assert [frame.unwinder for frame in stack.frames] == ["sframe", "kernel"]
    assert stack.frames[0].address == 12
    assert stack.end == "start of the task"


def test_the_file_of_another_kernel(dump: Dump) -> None:
    dump.main_file = None
    with pytest.raises(FileError, match="the file given with --exe is not this kernel's"):
        stacks(dump)
