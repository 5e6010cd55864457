"""A kernel module: it is relocatable, has several sections of code, and calls functions of the kernel.

Modules of distributions have no SFrame, and for AMD64 their CFI is in other files.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sframe_unwind.verify import Plan, verify
from sframe_unwind.verify.code_report import CodeReport
from tests.hanging import HANG
from tests.missing import toolchain_needed
from tests.samples.build import toolchain

SOURCE = Path(__file__).parent / "kernel" / "module.c"
FLAGS = (
    *("-O2", "-std=gnu11", "-ffreestanding", "-fno-pie", "-mcmodel=kernel", "-mno-red-zone", "-fno-stack-protector"),
    *("-pg", "-mfentry", "-mindirect-branch=thunk-extern", "-mfunction-return=thunk-extern", "-fno-jump-tables"),
    *("-fcf-protection=none", "-fasynchronous-unwind-tables", "-Wa,--gsframe"),
)
"""kbuild's options, without those about unwind tables."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> CodeReport:
    """Return the report of verifying the module against its code."""
    with toolchain_needed():
        tools = toolchain("amd64", 3)
    folder = tmp_path_factory.mktemp("kernel")
    made, module = folder / "module.o", folder / "module.ko"
    subprocess.run(["gcc", *FLAGS, f"-B{tools}/", "-c", str(SOURCE), "-o", str(made)], check=True, timeout=HANG)
    subprocess.run([str(tools / "ld"), "-r", str(made), "-o", str(module)], check=True, timeout=HANG)
    found = verify(str(module), Plan(False, True)).code
    assert found is not None
    return found


def test_all_is_judged(report: CodeReport) -> None:
    assert report.functions == 4
    assert report.instructions > 50
    for counts in report.counts.values():
        assert counts.unknown == 0
        assert counts.proved + counts.wrong == report.instructions
    assert set(report.counts) == {"sframe", "dwarf"}


def test_only_the_forgotten_push_is_found(report: CodeReport) -> None:
    assert {str(finding.spot) for finding in report.findings} == {".exit.text+0x6"}
    assert {(finding.table, finding.what, finding.rule) for finding in report.findings} == {
        ("sframe", "cfa", "rsp + 8"),
        ("dwarf", "cfa", "rsp + 8"),
    }
    assert {finding.code for finding in report.findings} == {"CFA = rsp + 16 since `push %rbx` at .exit.text+0x5"}
