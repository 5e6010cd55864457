"""Rows in readelf's notation, compared with recorded output of binutils 2.47 and with readelf itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sframe_unwind.arch import Arch, aarch64, amd64, s390x
from sframe_unwind.cli import main
from sframe_unwind.report.notation import Cells, cells, describe_rule
from sframe_unwind.sframe import header as headers
from sframe_unwind.sframe.constants import FdeType, PauthKey
from sframe_unwind.unwind_rule import CFA, OUTERMOST, RegisterRule, UnwindRule
from tests.cli.sections import AARCH64, AMD64, S390X, Function, elf, row, section
from tests.cli.text import comparable
from tests.hanging import HANG
from tests.missing import toolchain_needed
from tools.binutils import provide

DEFAULT, FLEX = FdeType.DEFAULT, FdeType.FLEX

# (ABI, fixed RA offset, version, row, cells)
ROWS = [
    (AMD64, -8, 3, DEFAULT, row(AMD64, 0, [16]), Cells("sp+16", "u", "f")),
    (AMD64, -8, 3, DEFAULT, row(AMD64, 0, [16, -16], fp=True), Cells("fp+16", "c-16", "f")),
    (AMD64, -8, 3, DEFAULT, row(AMD64, 0, [-8]), Cells("sp+-8", "u", "f")),
    (AMD64, -8, 3, DEFAULT, row(AMD64, 0, [1000, -1000], 1), Cells("sp+1000", "c-1000", "f")),
    (AMD64, -8, 3, DEFAULT, row(AMD64, 0, [100000, -100000], 2), Cells("sp+100000", "c-100000", "f")),
    (AMD64, -8, 3, DEFAULT, row(AMD64, 0, []), Cells("", "", "RA undefined")),
    (AMD64, -8, 3, FLEX, row(AMD64, 0, [0x51, 0]), Cells("r10+0", "u", "f")),
    (AMD64, -8, 3, FLEX, row(AMD64, 0, [0x33, -16, 0, 0x33, 0]), Cells("(fp-16)", "(fp+0)", "U")),
    (AMD64, -8, 3, FLEX, row(AMD64, 0, [0x39, 16, 0x02, -8, 0x02, -16]), Cells("sp+16", "c-16", "c-8")),
    # Register 16: the control word is unsigned.
    (AMD64, -8, 3, FLEX, row(AMD64, 0, [0x81, 16]), Cells("r16+16", "u", "f")),
    (AMD64, -8, 3, FLEX, row(AMD64, 0, [0x39, 8, 0x3B, 0, 0x39, 8]), Cells("sp+8", "sp+8", "(sp+0)")),
    (AMD64, -8, 3, FLEX, row(AMD64, 0, [0x39, 8, 0x29, 0, 0]), Cells("sp+8", "u", "r5+0")),
    (AMD64, -8, 3, FLEX, row(AMD64, 0, []), Cells("", "", "RA undefined")),
    (AARCH64, 0, 3, DEFAULT, row(AARCH64, 0, [0]), Cells("sp+0", "u", "u")),
    (AARCH64, 0, 3, DEFAULT, row(AARCH64, 0, [0], signed=True), Cells("sp+0", "u", "u[s]")),
    (AARCH64, 0, 3, DEFAULT, row(AARCH64, 0, [32, -24]), Cells("sp+32", "u", "c-24")),
    (AARCH64, 0, 3, DEFAULT, row(AARCH64, 0, [32, -24, -32], signed=True), Cells("sp+32", "c-32", "c-24[s]")),
    (AARCH64, 0, 3, DEFAULT, row(AARCH64, 0, [32, 0, -32]), Cells("sp+32", "c-32", "U")),
    (AARCH64, 0, 3, DEFAULT, row(AARCH64, 0, [], signed=True), Cells("", "", "RA undefined")),
    (AARCH64, 0, 3, FLEX, row(AARCH64, 0, [0xF9, 16, 0xEB, -8], 1), Cells("sp+16", "u", "(fp-8)")),
    (S390X, 0, 3, DEFAULT, row(S390X, 0, [20, -48, -72]), Cells("sp+320", "c-72", "c-48")),
    (S390X, 0, 3, DEFAULT, row(S390X, 0, [-21, 0, -72], fp=True), Cells("fp+-8", "c-72", "U")),
    # The offset of the CFA is scaled in flexible rows too, read from memory or not.
    (S390X, 0, 3, FLEX, row(S390X, 0, [0x79, 21, 0, 0x89, 0]), Cells("sp+328", "r17+0", "U")),
    (S390X, 0, 3, FLEX, row(S390X, 0, [0x5B, -16, 0x71, 0, 0x02, -72]), Cells("(fp+32)", "c-72", "r14+0")),
    (S390X, 0, 2, DEFAULT, row(S390X, 0, [0, 33, 35]), Cells("sp+160", "r17", "r16")),
    (S390X, 0, 2, DEFAULT, row(S390X, 0, [0, 0, 35]), Cells("sp+160", "r17", "U")),
    (S390X, 0, 2, DEFAULT, row(S390X, 0, [0, -48, 35]), Cells("sp+160", "r17", "c-48")),
]


@pytest.mark.parametrize(("abi", "ra", "version", "kind", "raw", "expected"), ROWS)
def test_row(abi: int, ra: int, version: int, kind: FdeType, raw: bytes, expected: Cells) -> None:
    header = headers.decode(section(abi, [], version, ra))
    assert cells(header, kind, raw[1:]) == expected


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("abi", [AMD64, AARCH64, S390X])
def test_readelf_prints_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str], abi: int, version: int) -> None:
    """The rows above, all attributes of a function and all combinations of flags, compared with readelf."""
    with toolchain_needed():
        tools = provide("2.47", "x86_64")
    chosen = [
        (kind, raw)
        for of_abi, _, of_version, kind, raw, _ in ROWS
        if of_abi == abi and (of_version == version or (of_version == 3 and kind is DEFAULT))
    ]
    ra = -8 if abi == AMD64 else 0
    plain = row(abi, 0, [16])
    functions = [Function(0x100 * i, 0x40, [raw], flexible=kind is FLEX) for i, (kind, raw) in enumerate(chosen)]
    functions += [Function(0x7000, 64, [plain], 0x10, repetition=16), Function(-0x7000, 64, [plain])]
    if abi == AARCH64:
        functions.append(Function(0x7100, 64, [plain], 0x20))
    if version == 3:
        functions += [Function(0x7200, 64, [], 0x80), Function(0x7300, 64, [], 0x80, True)]
    # Without flags 1 (sorted) and 4 (relative to itself) no linker has touched a version 2 table.  readelf takes its
    # start fields to count from the section; the assembler's relocations make them count from themselves.
    for flags in (0, 1, 4, 5) if version == 3 else (1, 3, 4, 5, 6, 7):
        file = elf(tmp_path / "file", abi, section(abi, functions, version, ra, flags=flags), address=0x100000)
        command = [str(tools / "readelf"), "--sframe", str(file)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANG).stdout
        assert main(["dump", str(file)]) == 0
        assert comparable(capsys.readouterr().out) == comparable(printed)


# (rule, ABI, key, text)
WORDS = [
    (
        UnwindRule(RegisterRule(7, 16, False), RegisterRule(CFA, -8, True), RegisterRule(CFA, -16, True)),
        amd64.ARCH,
        ["CFA = rsp + 16", "return address in memory at CFA - 8", "rbp in memory at CFA - 16"],
    ),
    (
        UnwindRule(RegisterRule(6, -16, True), RegisterRule(CFA, -8, True), RegisterRule(6, 0, True)),
        amd64.ARCH,
        ["CFA in memory at rbp - 16", "return address in memory at CFA - 8", "rbp in memory at rbp"],
    ),
    (
        UnwindRule(RegisterRule(31, 0, False), None, None, True),
        aarch64.LITTLE,
        ["CFA = sp", "return address still in x30", "return address signed with key B", "x29 unchanged"],
    ),
    (
        UnwindRule(RegisterRule(15, 160, False), RegisterRule(16, 0, False), RegisterRule(17, 0, False)),
        s390x.ARCH,
        ["CFA = r15 + 160", "return address in f0", "r11 in f2", "caller's r15 = CFA - 160"],
    ),
    (
        UnwindRule(RegisterRule(7, 8, False), RegisterRule(5, 8, False), RegisterRule(CFA, 8, False)),
        amd64.ARCH,
        ["CFA = rsp + 8", "return address = rdi + 8", "rbp = CFA + 8"],
    ),
    (OUTERMOST, amd64.ARCH, ["return address undefined: the outermost frame"]),
]


@pytest.mark.parametrize(("rule", "abi", "said"), WORDS)
def test_words(rule: UnwindRule, abi: Arch, said: list[str]) -> None:
    assert describe_rule(rule, abi, PauthKey.B) == said


def test_words_without_a_key() -> None:
    rule = UnwindRule(RegisterRule(31, 0, False), None, None, True)
    assert "return address signed" in describe_rule(rule, aarch64.LITTLE)
