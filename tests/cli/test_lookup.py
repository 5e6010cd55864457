"""`lookup`: the rows that readelf prints, found by address and by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from tests.cli.sections import AMD64, Function, elf, row, section
from tests.missing import toolchain_needed
from tests.samples.build import build, toolchain
from tests.samples.catalogue import ABIS
from tests.samples.readelf import read_sframe, read_symbols

ROW = row(AMD64, 0, [8])


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A file with three functions, symbols for two of them, and a gap."""
    functions = [
        Function(0x10, 0x10, [row(AMD64, 0, [8]), row(AMD64, 4, [16, -16])]),
        Function(0x20, 0x20, [row(AMD64, 0, [8]), row(AMD64, 11, [16])], 0x10, repetition=16),
        Function(0x50, 0x10, [row(AMD64, 2, [8])]),
        Function(0x60, 0x10, [], 0x80),
    ]
    symbols = [(b"first", 0x1010, 16), (b"other_name", 0x1010, 0), (b"evil\x1b[2J\n", 0x1050, 16), (b"a+1", 0x1018, 1)]
    return elf(tmp_path / "file", AMD64, section(AMD64, functions, ra=-8), address=0x1000, symbols=symbols)


def looked_up(capsys: pytest.CaptureFixture[str], status: int, file: Path, *addresses: str) -> str:
    """What lookup prints; checks its exit status, and that it complains when it says so."""
    assert main(["lookup", str(file), *addresses]) == status
    out, err = capsys.readouterr()
    assert bool(err) == (status == 2)
    return str(out)


def test_answer(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert looked_up(capsys, 0, small, "0x1014", "0x103c") == (
        "0x1014: first+0x4\n"
        "    function 0x1010..0x1020, 16 bytes\n"
        "    row 0x1014: CFA sp+16, FP c-16, RA f\n"
        "    CFA = rsp + 16\n"
        "    return address in memory at CFA - 8\n"
        "    rbp in memory at CFA - 16\n"
        "0x103c: (no symbol)\n"
        "    function 0x1020..0x1040, 32 bytes, repeats every 16 bytes\n"
        "    row +0xb: CFA sp+16, FP u, RA f\n"
        "    CFA = rsp + 16\n"
        "    return address in memory at CFA - 8\n"
        "    rbp unchanged\n"
    )


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0X101F", 0x101F),
        ("4112", 0x1010),
        ("first", 0x1010),
        ("first+0xf", 0x101F),
        ("first+2", 0x1012),
        ("a+1", 0x1018),
    ],
)
def test_ways_to_say_an_address(small: Path, capsys: pytest.CaptureFixture[str], text: str, address: int) -> None:
    assert looked_up(capsys, 0, small, text).startswith(f"{address:#x}: ")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("0x1000", "(no symbol): not covered: no SFrame function contains the address"),
        ("0x1040", "(no symbol): not covered: no SFrame function contains the address"),
        ("0xffffffffffffffffff", "(no symbol): not covered: no SFrame function contains the address"),
        ("0x1051", "not covered: the address lies before the first row of the function at 0x1050"),
        ("0x1061", "not covered: SFrame lists the signal trampoline at 0x1060 without rows"),
    ],
)
def test_not_covered(small: Path, capsys: pytest.CaptureFixture[str], address: str, said: str) -> None:
    assert said in looked_up(capsys, 1, small, address)
    both = looked_up(capsys, 1, small, address, "0x1010")
    assert said in both
    assert "0x1010: first\n" in both


def test_symbols_cannot_drive_the_terminal(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert looked_up(capsys, 0, small, "0x1052").startswith("0x1052: evil\\x1b[2J\\n+0x2\n")


@pytest.mark.parametrize("text", ["nobody", "nobody+1", "first+", "+1", "0x", "-1", "", "1e3", "first+-1", "\x1b"])
def test_no_such_address(small: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main(["lookup", "--", str(small), text, "0x1010"]) == 2
    printed = capsys.readouterr()
    shown = text.replace("\x1b", "\\x1b")
    assert printed.err == f"sframe-unwind: {small}: {shown}: neither an address nor a symbol of the file\n"
    assert printed.out.startswith("0x1010: first\n")


def test_name_of_several(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = elf(
        tmp_path / "file",
        AMD64,
        section(AMD64, [Function(0x10, 8, [ROW]), Function(0x20, 8, [ROW])], ra=-8),
        symbols=[(b"helper", 0x20, 8), (b"helper", 0x10, 8)],
    )
    said = looked_up(capsys, 0, file, "helper+4")
    assert re.findall("^0x.*", said, re.MULTILINE) == ["0x14: helper+0x4", "0x24: helper+0x4"]


def test_malformed_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    functions = [Function(0x10, 8, [bytes([0, 0x61])]), Function(0x20, 8, [ROW])]
    file = elf(tmp_path / "file", AMD64, section(AMD64, functions, ra=-8))
    said = looked_up(capsys, 2, file, "0x10", "0x20", "0x30")
    assert "0x20: " in said
    assert "0x30: " in said


@pytest.mark.parametrize(("abi", "version"), [(abi.name, version) for abi in ABIS.values() for version in abi.versions])
def test_rows_of_readelf(capsys: pytest.CaptureFixture[str], abi: str, version: int) -> None:
    """Every row is found by its first address and by the last before the next one."""
    with toolchain_needed():
        file = build("free_leaf", abi, version)
        tools = toolchain(abi, version)
    expected = {}
    for function in read_sframe(tools, file).functions:
        if function.mask:
            continue
        starts = [printed.start for printed in function.rows]
        for printed, end in zip(function.rows, [*starts[1:], function.start + function.size]):
            if printed.start < end:
                expected[printed.start] = expected[end - 1] = printed
    said = looked_up(capsys, 0, file, *map(hex, expected))
    found = re.findall(r"^(0x\w+): .*\n.*\n    row (0x\w+): (?:CFA (\S+), FP (\S+), RA )?(.+)$", said, re.MULTILINE)
    assert len(found) == len(expected)
    for address, start, cfa, fp, ra in found:
        printed = expected[int(address, 16)]
        # What readelf of binutils 2.40 does not know: where the return address of AMD64 is.
        known = "u" if version == 1 and ra == "f" else ra
        assert (int(start, 16), cfa, fp, known) == (printed.start, printed.cfa, printed.fp, printed.ra)
    names = {symbol.address: name for name, symbol in read_symbols(tools, file).items()}
    leaf = next(address for address, name in names.items() if name == "busy_leaf")
    assert f"{leaf:#x}: busy_leaf\n" in said
