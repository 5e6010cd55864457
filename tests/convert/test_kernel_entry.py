"""Rows of a kernel's entry code: it is entered by no call, and where a stack ends, a row says so."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from sframe_unwind.convert.from_code import NO_TYPE
from sframe_unwind.elf import load, opened
from sframe_unwind.unwind_rule import OUTERMOST
from tests.code.assembled import BINUTILS, assemble
from tests.hanging import HANG
from tools.binutils import provide

_ADDRESS = "-Ttext=0xffffffc008010000"
_SOURCE = """
    .balign 0x800
vectors:
    .rept 8
    sub sp,sp,#336
    b el1h_64_irq
    .balign 128
    .endr
    .rept 8
    sub sp,sp,#336
    b el0t_64_sync
    .balign 128
    .endr
    .size vectors,.-vectors
el1h_64_irq:
    mov x0,sp
    bl el1h_64_irq_handler
    b ret_to_kernel
    .size el1h_64_irq,.-el1h_64_irq
el0t_64_sync:
    mov x0,sp
    bl el0t_64_sync_handler
    b ret_to_user
    .size el0t_64_sync,.-el0t_64_sync
ret_to_kernel:
    eret
    .size ret_to_kernel,.-ret_to_kernel
ret_to_user:
    eret
    .size ret_to_user,.-ret_to_user
ret_from_fork:
    blr x20
    b ret_to_user
    .size ret_from_fork,.-ret_from_fork
    .type el1h_64_irq_handler,%function
el1h_64_irq_handler:
    ret
    .size el1h_64_irq_handler,.-el1h_64_irq_handler
    .type el0t_64_sync_handler,%function
el0t_64_sync_handler:
    ret
    .size el0t_64_sync_handler,.-el0t_64_sync_handler
"""


def test_where_the_stack_of_a_kernel_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel, copy = tmp_path / "vmlinux", tmp_path / "copy"
    made = assemble("aarch64", _SOURCE, tmp_path / "vmlinux.o")
    linker = provide(BINUTILS, "aarch64") / "ld"
    subprocess.run([str(linker), _ADDRESS, "-e0", str(made), "-o", str(kernel)], check=True, timeout=HANG)
    with opened(kernel) as binary:
        at = {symbol.name: symbol.address for symbol in binary.symbols}
    assert main(["convert", str(kernel), "-o", str(copy), "--from", "code", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    share = next(one for one in report["shares"] if one["kind"] == "entry code")
    assert (share["functions"], share["code_bytes"]) == (4, 0x400 + 3 * 4 + 4 + 2 * 4)
    (section,) = load(copy)
    ends = {one.start for one in section.functions() for _, rule in one.rows() if rule == OUTERMOST}
    names = ("el0t_64_sync", "ret_to_user", "ret_from_fork")
    assert ends == {at["vectors"] + 0x400, *(at[name] for name in names)}
    # The interrupted function is the next frame: no row says that there is none.
    left = {(one["function"], one["reason"]) for one in report["losses"]}
    assert left == {(name, NO_TYPE) for name in ("vectors", "el1h_64_irq", "ret_to_kernel")}
    assert main(["convert", str(kernel), "-o", str(copy), "--from", "code"]) == 1
    assert "from the kernel's entry code, as outermost frames: 4 functions, " in capsys.readouterr().out
