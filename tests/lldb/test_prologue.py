"""Steps over the instructions of a function of which LLDB has neither the CFI nor the beginning."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.hanging import HANG
from tests.lldb.debuggers import PROVIDING, find
from tests.lldb.driver import IMPORT, batch, stacks
from tests.missing import toolchain_needed
from tests.samples.build import toolchain

SOURCE = """
__asm__(".cfi_sections .sframe");
volatile int number;
__attribute__((noipa)) int leaf(int a) { return a + number; }
__attribute__((noipa)) int work(int a, int b, int c) { return leaf(a) + leaf(b) * leaf(c) + a * b - c; }
__attribute__((noipa)) int outer(int a) { return work(a, a + 1, a + 2) + number; }
int main(void) { return outer(number) != 2; }
"""


def instructions(program: Path) -> list[int]:
    """The addresses of the instructions of ``work``, up to and with the first call."""
    said = subprocess.run(
        ["objdump", "-d", "--disassemble=work", program], capture_output=True, text=True, timeout=HANG, check=True
    ).stdout
    found = re.findall(r"^ +([0-9a-f]+):\t[0-9a-f ]+\t(\w+)", said, re.MULTILINE)
    calls = [index for index, (_, name) in enumerate(found) if name == "call"]
    return [int(address, 16) for address, _ in found[: calls[0] + 1]]


@pytest.mark.parametrize("rbp", ["1", "`$rsp + 16`"], ids=["a-number", "of-the-stack"])
@pytest.mark.parametrize("version", PROVIDING)
def test_item_42_each_step_ends_at_the_next_instruction(version: str, rbp: str, tmp_path: Path) -> None:
    """With each ``push``, LLDB computes another CFA; it then goes on to the return address that SFrame gives.

    LLDB takes RBP for a frame pointer: with an address of the stack there, LLDB alone fails to step.
    """
    (tmp_path / "work.c").write_text(SOURCE, encoding="utf-8")
    program, stripped = tmp_path / "work", tmp_path / "stripped"
    with toolchain_needed():
        flags = ("-O2", "-no-pie", "-fno-inline", "-Wa,--gsframe", f"-B{toolchain('amd64', 3)}/")
    subprocess.run(["gcc", *flags, tmp_path / "work.c", "-o", program], check=True, timeout=HANG)
    subprocess.run(["strip", "-o", stripped, program], check=True, timeout=HANG)
    expected = instructions(program)
    assert len(expected) > 5
    at_work = (f"breakpoint set -a {expected[0]:#x}", "continue", f"register write rbp {rbp}")
    start = ("process launch -s -o /dev/null", *at_work, "bt")
    commands = [*start, *(["thread step-inst-over", "bt"] * (len(expected) - 1))]
    said = batch(
        find(version), "-O", IMPORT, *(part for command in commands for part in ("-o", command)), str(stripped)
    )
    shown = [[int(pc, 16) for pc in stack] for stack in stacks(said)]
    assert [stack[0] for stack in shown] == expected
    assert len(shown[0]) >= 3
    assert {tuple(stack[1:]) for stack in shown} == {tuple(shown[0][1:])}
