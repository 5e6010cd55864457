"""Listings of samples and of the C library have all rows and rules that readelf of binutils 2.47 prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.cfi.libraries import FOLDERS
from lab.show.counting import compare
from sframe_unwind.cli import main
from sframe_unwind.convert.to_sframe import Wanted, convert_to_sframe
from tests.elf.objects import run, tools_for
from tests.missing import toolchain_needed
from tests.samples.build import build, toolchain

COMPUTED = """
.globl _start
.type _start, @function
_start:
.cfi_startproc
.cfi_offset rbp, -24
nop
.cfi_escape 0x0f, 5, 0x77, 24, 0x06, 0x23, 8 # CFA: DW_OP_breg7 24, deref, plus_uconst 8
nop
.cfi_escape 0x0f, 4, 0x77, 0, 0x32, 0x1e # CFA: DW_OP_breg7 0, lit2, mul
nop
.cfi_def_cfa rsp, 8
.cfi_escape 0x10, 6, 4, 0x77, 0, 0x32, 0x1e # rbp, by the same expression
.cfi_escape 0x10, 16, 4, 0x77, 0, 0x32, 0x1e # the return address
ret
.cfi_endproc
.size _start, .-_start
"""


def test_what_is_known_beside_an_expression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A value that no rule can hold is ``exp``; the others are shown, as by readelf."""
    source, linkable, program = tmp_path / "computed.s", tmp_path / "computed.o", tmp_path / "computed"
    source.write_text(COMPUTED)
    tools = tools_for("amd64", 3)
    run(tools / "as", "-o", linkable, source)
    run(tools / "ld", "-o", program, linkable)
    assert compare(program, tools).dwarf == 4
    assert main(["show", str(program), "_start", "--no-code", "--json"]) == 0
    (function,) = json.loads(capsys.readouterr().out)["functions"]
    assert [list(row["rules"]["DWARF CFI"].values()) for row in function["rows"]] == [
        ["rsp+8", "c-24", "c-8"],
        ["(rsp+24)+8", "c-24", "c-8"],
        ["exp", "c-24", "c-8"],
        ["rsp+8", "exp", "exp"],
    ]


@pytest.mark.parametrize(
    ("name", "abi", "variant"),
    [
        ("plt", "amd64", "O2"),
        ("realign", "amd64", "O2"),
        ("callback", "aarch64", "pac"),
        ("plt", "aarch64", "O2"),
        ("free_walk", "aarch64_be", "pacb"),
        ("callback", "s390x", "O0"),
        ("plt", "s390x", "O2"),
    ],
)
def test_every_row_is_listed(name: str, abi: str, variant: str) -> None:
    with toolchain_needed():
        counts = compare(build(name, abi, 3, variant), toolchain(abi, 3))
    assert counts.sframe >= 9
    assert counts.dwarf >= 9


def test_every_row_of_the_c_library_is_listed(tmp_path: Path) -> None:
    """All functions of the system's C library, with SFrame from its CFI."""
    copy = tmp_path / "libc.so"
    convert_to_sframe(FOLDERS["amd64"] / "libc.so.6", copy, Wanted())
    with toolchain_needed():
        counts = compare(copy, toolchain("amd64", 3))
    assert counts.sframe > 20_000
    assert counts.dwarf > 20_000
