"""The reasons that `verify` gives for functions without SFrame, compared with the real assembler's warnings."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from sframe_unwind import elf
from sframe_unwind.cfi.records import CfiFunction
from sframe_unwind.verify import verify
from sframe_unwind.verify.reasons import reason
from sframe_unwind.verify.verdict import Outcome
from tests.elf.objects import TIMEOUT, tools_for

AMD64, AARCH64, S390X = ("amd64",), ("aarch64", "aarch64_be"), ("s390x",)
EVERY = (*AMD64, *AARCH64, *S390X)
BYTE_ORDER = {"aarch64_be": ["-EB"]}


class Left(NamedTuple):
    """A function that GNU as 2.47 leaves out."""

    name: str
    abis: tuple[str, ...]
    cfi: str
    """Its directives, one instruction after the function's start."""
    warning: str
    """A pattern for the assembler's warning."""
    reason: str
    """A pattern for the reason that `verify` gives."""


LEFT_OUT = (
    Left(
        "column",
        AMD64,
        ".cfi_return_column 3",
        "non-default RA register 3",
        "return address in column rbx, expected rip",
    ),
    Left("column", AARCH64, ".cfi_return_column 3", "non-default RA register 3", "column x3, expected (lr|x30)"),
    Left(
        "rows",
        EVERY,
        ".rept 32768\n.cfi_adjust_cfa_offset 160\nnop\n.cfi_adjust_cfa_offset -160\nnop\n.endr",
        "Number of FREs exceeds UINT16_MAX",
        r"65,53\d rows, more than the 65,535 that a function may have",
    ),
    Left("window", (*AMD64, *S390X), ".cfi_window_save", r"\.cfi_window_save", "which has no meaning on "),
    Left(
        "with_pc",
        AARCH64,
        ".cfi_negate_ra_state_with_pc",
        "negate_ra_state_with_pc",
        "return address signed with the pc",
    ),
    Left(
        "cfa_expression",
        EVERY,
        ".cfi_escape 0x0f, 2, 0x77, 16",
        r"\.cfi_escape with op \(0xf\)",
        r"a CFA by \.cfi_escape DW_CFA_def_cfa_expression|CFA x7 .*, for which GNU as",
    ),
    Left("expression", AMD64, ".cfi_escape 0x10, 3, 3, 0x76, 0x80, 0x7f", r"op \(0x10\)", "rbx by .*DW_CFA_expression"),
    Left(
        "sp_expression",
        AMD64,
        ".cfi_escape 0x10, 7, 2, 0x76, 8",
        "DW_CFA_expression with SP",
        "rsp by .*DW_CFA_expression",
    ),
    Left("val_expression", AMD64, ".cfi_escape 0x16, 3, 2, 0x76, 8", r"op \(0x16\)", "rbx by .*DW_CFA_val_expression"),
    Left(
        "val_expression",
        AARCH64,
        ".cfi_escape 0x16, 19, 2, 0x76, 8",
        r"op \(0x16\)",
        "x19 by .*DW_CFA_val_expression",
    ),
    Left("args_size", AMD64, ".cfi_escape 0x2e, 16", r"op \(0x2e\)", "16 bytes of arguments by .*DW_CFA_GNU_args_size"),
    Left(
        "large_args_size",
        AMD64,
        ".cfi_def_cfa 6, 16\n.cfi_escape 0x2e, 0x80, 1",
        r"op \(0x2e\)",
        "128 bytes of arguments by .*DW_CFA_GNU_args_size",
    ),
    Left("fp_value", AMD64, ".cfi_val_offset 6, -16", r"\.cfi_val_offset with FP", r"rbp by \.cfi_val_offset"),
    Left("sp_value", AMD64, ".cfi_val_offset 7, -16", r"\.cfi_val_offset with SP", r"rsp by \.cfi_val_offset"),
    Left("ra_value", S390X, ".cfi_val_offset 14, -16", r"\.cfi_val_offset with RA", r"r14 by \.cfi_val_offset"),
    Left(
        "fp_value",
        AARCH64,
        ".cfi_val_offset 29, -16",
        r"\.cfi_val_offset with FP",
        "a value that is a place, for which GNU as",
    ),
    Left("fp_undefined", AMD64, ".cfi_undefined 6", r"FP reg 6 in \.cfi_undefined", "rbp cannot be restored"),
    Left("fp_undefined", AARCH64, ".cfi_undefined 29", r"FP reg 29 in \.cfi_undefined", "(fp|x29) cannot be restored"),
    Left("sp_undefined", AMD64, ".cfi_undefined 7", r"SP reg 7 in \.cfi_undefined", r"rsp by \.cfi_undefined"),
    Left("sp_register", AMD64, ".cfi_register 7, 10", r"SP register 7 in \.cfi_register", r"rsp by \.cfi_register"),
    Left(
        "ra_register",
        AARCH64,
        ".cfi_register 30, 9",
        r"RA register 30 in \.cfi_register",
        "a value in a register, for which GNU as",
    ),
    Left(
        "cfa_register",
        AARCH64,
        ".cfi_def_cfa 9, 16",
        "non-SP/FP register 9",
        "CFA x9 .* 16, for which GNU as has no words",
    ),
    Left(
        "fp_alone",
        AARCH64,
        ".cfi_offset 29, -16",
        "FP without RA on stack",
        "(fp|x29) is saved, but the return address is not",
    ),
)
"""Functions that GNU as 2.47 leaves out in version 3, as its warnings show."""

STATE = """
    .cfi_startproc simple
    .cfi_remember_state
    nop
    .cfi_def_cfa {sp}, 16
    nop
    .cfi_restore_state
    nop
    .cfi_endproc
"""


def assembled(abi: str, function: str, folder: Path) -> tuple[Path, str]:
    """Assemble a function that SFrame describes and one that it does not; return the file and the warnings."""
    source, result = folder / "left.s", folder / "left.o"
    source.write_text(
        ".text\n.type described, @function\ndescribed: .cfi_startproc\nnop\n.cfi_endproc\n"
        ".size described, .-described\n"
        f".type left, @function\nleft:\n{function}\n.size left, .-left\n",
        encoding="ascii",
    )
    command = [str(tools_for(abi, 3) / "as"), *BYTE_ORDER.get(abi, []), "--gsframe", "-o", str(result), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    return result, done.stderr


def told(path: Path) -> str:
    """Return the reason that `verify` gives for the function `left`."""
    verdict = verify(path)
    (function,) = (function for function in verdict.functions if function.name == "left")
    assert function.outcome is Outcome.NOT_EXPRESSIBLE
    assert verdict.both == 1
    assert verdict.agrees
    return function.reason


@pytest.mark.parametrize(
    ("abi", "left"), [pytest.param(abi, left, id=f"{left.name}-{abi}") for left in LEFT_OUT for abi in left.abis]
)
def test_what_the_assembler_leaves_out_is_told(abi: str, left: Left, tmp_path: Path) -> None:
    body = f".cfi_startproc\nnop\n{left.cfi}\nnop\n.cfi_endproc"
    path, warning = assembled(abi, body, tmp_path)
    assert re.search(f"no SFrame FDE emitted.*{left.warning}", warning), warning
    assert re.search(left.reason, told(path))


@pytest.mark.parametrize(("abi", "sp"), [("amd64", 7), ("aarch64", 31), ("s390x", 15)])
def test_a_state_that_is_remembered_before_there_is_one(abi: str, sp: int, tmp_path: Path) -> None:
    path, warning = assembled(abi, STATE.format(sp=sp), tmp_path)
    assert "cfi_remember_state without prior SFrame FRE state" in warning
    assert told(path) == ".cfi_remember_state before there is a state"


TRANSLATED = (
    ("amd64", ".cfi_escape 0x0f, 3, 0x76, 0x78, 0x06"),
    ("amd64", ".cfi_escape 0x10, 6, 2, 0x76, 0"),
    ("amd64", ".cfi_escape 0x10, 3, 2, 0x76, 8"),
    ("amd64", ".cfi_def_cfa 6, 16\n.cfi_escape 0x2e, 16"),
    ("amd64", ".cfi_escape 0x2e, 0"),
    ("amd64", ".cfi_val_offset 3, -16"),
    ("amd64", ".cfi_val_offset 7, 0"),
    ("amd64", ".cfi_register 6, 10"),
    ("amd64", ".cfi_undefined 16"),
    ("amd64", ".cfi_def_cfa 10, 0\nnop\n.cfi_def_cfa_offset 8"),
    ("aarch64", ".cfi_window_save"),
    ("aarch64", ".cfi_register 19, 9"),
    ("s390x", ".cfi_register 15, 16"),
    ("s390x", ".cfi_val_offset 15, -160"),
    ("s390x", ".cfi_offset 11, -72"),
)
"""Variants of the cases above with directives that the assembler translates, or ignores."""


@pytest.mark.parametrize(("abi", "cfi"), TRANSLATED)
def test_no_reason_where_the_assembler_has_none(abi: str, cfi: str, tmp_path: Path) -> None:
    path, warning = assembled(abi, f".cfi_startproc\nnop\n{cfi}\nnop\n.cfi_endproc", tmp_path)
    assert warning == ""
    verdict = verify(path)
    assert (verdict.both, len(verdict.functions)) == (2, 2)
    with elf.opened(path) as binary:
        arch, cfi_of_file = binary.arch, binary.cfi
    for start, end in cfi_of_file.ranges():
        (described,) = cfi_of_file.functions(start, end)
        assert isinstance(described, CfiFunction)
        assert reason(described, arch, 3) == ""
