"""Directives for hand-written assembly: applied to the source, assembled, and checked."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from sframe_unwind.verify import Plan, verify
from tests.annotate.assembling import assembled, assembler, patched, rules, written
from tests.annotate.sources import FOR_SCFI, NUMBERS, SOURCES
from tests.hanging import HANG


@pytest.mark.parametrize("machine", SOURCES)
def test_the_code_proves_what_is_assembled(machine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path, SOURCES[machine])
    status, patch, messages = patched(machine, source, capsys)
    assert (status, messages) == (0, "")
    assert f"# proved: the CFI of {NUMBERS[machine]} functions, at each of" in patch
    # Checked again, without what the command knows of the source.
    made = assembled(machine, source, "--gsframe")
    assert len(rules(made)) == NUMBERS[machine]
    found = verify(made, Plan(dwarf=False, code=True)).code
    assert found is not None
    assert found.counts["dwarf"].proved > 5 * NUMBERS[machine]
    assert (found.counts["dwarf"].wrong, found.counts["dwarf"].unknown) == (0, 0)
    assert not found.findings


@pytest.mark.parametrize("machine", SOURCES)
def test_sframe_of_the_assembler(machine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each function that needs no DWARF expression and has no lost frame pointer gets SFrame of the same directives."""
    source = written(tmp_path, SOURCES[machine])
    patched(machine, source, capsys)
    found = verify(assembled(machine, source, "--gsframe"), Plan(dwarf=True, code=True))
    assert found.agrees
    assert found.code is not None
    assert found.code.counts["sframe"].proved > 20
    assert found.code.counts["sframe"].wrong == 0


def test_as_gnu_as_has_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path, FOR_SCFI)
    expected = tmp_path / "scfi.o"
    command = [*assembler("amd64", "--scfi=experimental"), "-o", str(expected), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=HANG)
    patched("amd64", source, capsys)
    assert rules(assembled("amd64", source)) == rules(expected)


def test_the_state_comes_back_after_an_exit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path, FOR_SCFI)
    patched("amd64", source, capsys)
    body = source.read_text().partition("two_exits:")[2]
    texts = re.findall(r"\.cfi_\w+|\bret\b|\.Lother_exit:", body)
    first, second = texts.index("ret"), texts.index(".Lother_exit:")
    assert ".cfi_remember_state" in texts[:first]
    assert texts[first + 1 : second + 2] == [".Lother_exit:", ".cfi_restore_state"]
    assert texts[-1] == ".cfi_endproc"


def test_the_key_of_signed_return_addresses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path, SOURCES["aarch64"])
    patched("aarch64", source, capsys)
    functions = re.split(r"\.globl ", source.read_text())
    signed = {one.partition("\n")[0]: one for one in functions if ".cfi_negate_ra_state" in one}
    assert set(signed) == {"signed", "signed_with_b"}
    assert {name: ".cfi_b_key_frame" in one for name, one in signed.items()} == {"signed": False, "signed_with_b": True}


def test_registers_other_than_the_frame_pointer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By hand from the sources."""
    expected = {
        "amd64": (".cfi_offset %rbx, -24", ".cfi_offset %r15, -32", ".cfi_undefined %rbp"),
        "aarch64": (".cfi_offset x19, -32", ".cfi_offset d9, -8", ".cfi_offset x30, -16"),
        "s390x": (
            ".cfi_register %r14, %f0",
            ".cfi_register %r11, %f2",
            ".cfi_offset %f8, -168",
            ".cfi_offset %r6, -112",
        ),
    }
    for machine, directives in expected.items():
        source = written(tmp_path, SOURCES[machine], f"{machine}.s")
        patched(machine, source, capsys)
        text = source.read_text()
        assert [directive for directive in directives if f"{directive}\n" not in text] == []


def test_escapes_are_the_exception(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path, SOURCES["amd64"])
    patched("amd64", source, capsys)
    # The CFA is the word at rsp+152 plus 8: DW_OP_breg7 152; DW_OP_deref; DW_OP_consts 8; DW_OP_plus.
    escapes = [line.strip() for line in source.read_text().splitlines() if ".cfi_escape" in line]
    assert escapes == [".cfi_escape 0x0f, 0x07, 0x77, 0x98, 0x01, 0x06, 0x11, 0x08, 0x22"]
