"""A kernel's file as the build of Linux makes it: linked in the upper half, movable, and with a second SFrame section.

The code of `arch/arm64/kernel/pi` has its sections renamed to `.init...`, also `.sframe`.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from sframe_unwind.lint import PROFILES, lint
from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.verdict import Outcome, SectionReport
from tests.elf.objects import FUNCTION, link, run, tools_for
from tests.hanging import HANG

KERNEL = """
    function start
    .cfi_startproc
    stp x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    ldp x29, x30, [sp], #16
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size start, . - start
    function second
    .cfi_startproc
    ret
    .cfi_endproc
    .size second, . - second
"""
EARLY = """
    function early
    .cfi_startproc
    nop
    ret
    .cfi_endproc
    .size early, . - early
"""
TEXT = 0xFFFFFFC008010000


@pytest.fixture(scope="module")
def vmlinux(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("kernel")
    tools = tools_for("aarch64", 3)
    for name, text in (("kernel", KERNEL), ("early", EARLY)):
        source = folder / f"{name}.s"
        source.write_text(f".cfi_sections .debug_frame\n{FUNCTION}\n.text\n{text}", encoding="ascii")
        run(tools / "as", "--gsframe", source, "-o", folder / f"{name}.o")
    run(tools / "objcopy", "--prefix-alloc-sections=.init", folder / "early.o")
    options = ("-pie", "--no-dynamic-linker", f"-Ttext={TEXT:#x}", "-e", "start")
    return link(tools, "aarch64", folder / "vmlinux", folder / "kernel.o", folder / "early.o", options=options)


def functions_by_readelf(vmlinux: Path) -> dict[str, int]:
    """Return how many functions each section has, by readelf."""
    command = [str(tools_for("aarch64", 3) / "readelf"), "--sframe=.sframe", "--sframe=.init.sframe", str(vmlinux)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANG).stdout
    return {name: int(count) for name, count in re.findall(r"section (\S+):.*?Num FDEs: (\d+)", said, re.DOTALL)}


def linted(vmlinux: Path) -> dict[str, SectionReport]:
    """Return the functions that are found in each section, by its name."""
    return {section.section: section for section in lint(vmlinux, [PROFILES["linux-kernel"]]).sections}


def test_functions_of_a_kernel_that_can_move_are_in_its_code(vmlinux: Path) -> None:
    """It is ET_DYN, as a program that is loaded anywhere, but its addresses do not count from 0."""
    section = linted(vmlinux)[".sframe"]
    assert section.judgements[0].outcome is Outcome.ACCEPTED
    assert c.FDE_OUTSIDE_TEXT not in {shown.finding.rule for shown in section.findings}


def test_code_without_rows_is_listed_for_the_section_that_is_read(vmlinux: Path) -> None:
    listed = {c.CODE_WITHOUT_FDE, c.FUNCTION_WITHOUT_ROWS}
    rules = {name: {shown.finding.rule for shown in one.findings} for name, one in linted(vmlinux).items()}
    assert listed <= rules[".sframe"]
    assert not listed & rules[".init.sframe"]


def test_verify_counts_the_functions_of_each_section(vmlinux: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The number in a debugger is that of the section that it reads."""
    assert main(["verify", str(vmlinux)]) == 0
    first, counts = capsys.readouterr().out.splitlines()
    assert "3 functions in both" in first
    assert counts.startswith("  functions with SFrame: ")
    assert "2 in .sframe, which debuggers read" in counts
    assert "1 in .init.sframe" in counts
    assert main(["verify", "--json", str(vmlinux)]) == 0
    (told,) = json.loads(capsys.readouterr().out)["files"]
    shown = {one["section"]: one["functions"] for one in told["sframe_sections"]}
    assert shown == functions_by_readelf(vmlinux) == {".sframe": 2, ".init.sframe": 1}
