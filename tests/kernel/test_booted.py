"""The kernel in QEMU: stacks of an interrupt, a system call, a kernel thread and all tasks, and a dump.

`make test-kernel` stops it in more places and in more debuggers.  These tests run first, so that the kernel is built
while others run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.kernel.arm64 import (
    DEBUGGERS_OF_TEST_ALL,
    STOPS_OF_TEST_ALL,
    booted_arm64,
    check_dump_of_arm64,
    check_stop_of_arm64,
    check_tasks_of_arm64,
)
from lab.kernel.machine import Machine
from sframe_unwind.lint import PROFILES, lint
from sframe_unwind.lint.catalogue import FUNCTION_WITHOUT_ROWS
from sframe_unwind.lint.verdict import Outcome
from tests.hanging import hang_after
from tests.missing import package_needed

pytestmark = pytest.mark.timeout(hang_after(90))  # the first of them builds the kernel, beside other tests


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with booted_arm64(tmp_path_factory.mktemp("machine")) as one:
        yield one


@pytest.mark.parametrize("function", STOPS_OF_TEST_ALL)
@pytest.mark.parametrize("name", DEBUGGERS_OF_TEST_ALL)
def test_stop(name: str, function: str, machine: Machine) -> None:
    check_stop_of_arm64(name, function, machine)


@pytest.mark.parametrize("name", DEBUGGERS_OF_TEST_ALL)
def test_tasks(name: str, machine: Machine) -> None:
    check_tasks_of_arm64(name, machine)


def test_its_file_is_ready_for_a_reliable_unwinder(machine: Machine) -> None:
    """The kernel accepts the section, and knows all functions but those in assembly and those of `pi`."""
    (section, _) = lint(machine.built.vmlinux, [PROFILES["linux-kernel"]]).sections
    assert section.judgements[0].outcome is Outcome.ACCEPTED
    names = {
        shown.finding.where.split()[-1] for shown in section.findings if shown.finding.rule is FUNCTION_WITHOUT_ROWS
    }
    assert {"vectors", "el1h_64_irq", "cpu_switch_to", "ret_from_fork", "__pi_kaslr_early_init"} <= names
    assert not names & {"vfs_read", "start_kernel", "scheduler_tick"}


def test_each_stack_of_a_dump_is_that_of_drgn(machine: Machine, tmp_path: Path) -> None:
    package_needed("drgn")
    check_dump_of_arm64(machine, tmp_path)
