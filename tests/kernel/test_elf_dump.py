"""A small crash dump in a file that drgn opens: the stack of its waiting task, compared with drgn's own unwinder."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.process.drgn_kernel import open_dump
from sframe_unwind.process.stacks import named
from sframe_unwind.process.vmcore import VmcoreTarget
from tests.kernel.elf_dump import write_dump
from tests.missing import package_needed

package_needed("drgn")

import drgn  # noqa: E402  # it is not installed everywhere


def test_stacks(tmp_path: Path) -> None:
    dump = write_dump(tmp_path)
    kernel = open_dump(str(dump.vmcore), str(dump.vmlinux), ())
    target = VmcoreTarget("vmcore", kernel, pytest.fail)
    waits, ran = (named(target.unwind(thread), target.code) for thread in target.threads)
    task = drgn.Object(kernel.program, "struct task_struct *", dump.memory.symbol("init_task"))
    by_drgn = [(frame.pc, frame.name) for frame in kernel.program.stack_trace(task)]
    assert [name for _, name in by_drgn] == ["schedule", "worker", "ret_from_fork"]
    assert [(frame.pc, frame.function) for frame in waits.frames] == by_drgn
    assert [frame.unwinder for frame in waits.frames] == ["sframe", "sframe", "kernel"]
    assert (ran.title, ran.end) == ('Thread 1 "task1", D, on a processor', "its registers are not in the dump")
