"""`lookup` finds, by address and by name, the rows that readelf prints."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sframe_unwind import elf as elf_file
from sframe_unwind.cli import main
from tests.cli.sections import AMD64, Function, elf, row, section
from tests.elf.objects import run, tools_for
from tests.hanging import HANG
from tests.missing import toolchain_needed
from tests.samples.build import build, toolchain
from tests.samples.catalogue import ABIS
from tests.samples.readelf import read_sframe, read_symbols

ROW = row(AMD64, 0, [8])


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Write a file with three functions, symbols for two of them, and a gap."""
    functions = [
        Function(0x10, 0x10, [row(AMD64, 0, [8]), row(AMD64, 4, [16, -16])]),
        Function(0x20, 0x20, [row(AMD64, 0, [8]), row(AMD64, 11, [16])], 0x10, repetition=16),
        Function(0x50, 0x10, [row(AMD64, 2, [8])]),
        Function(0x60, 0x10, [], 0x80),
    ]
    symbols = [(b"first", 0x1010, 16), (b"other_name", 0x1010, 0), (b"evil\x1b[2J\n", 0x1050, 16), (b"a+1", 0x1018, 1)]
    return elf(tmp_path / "file", AMD64, section(AMD64, functions, ra=-8), address=0x1000, symbols=symbols)


def looked_up(capsys: pytest.CaptureFixture[str], status: int, file: Path, *addresses: str) -> str:
    """Return the output of lookup; check its exit status, and that it prints an error if the status requires one."""
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
    shown = text.replace("\x1b", "\\x1b") or "''"
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


@pytest.fixture(
    params=[[bytes([0, 0x61])], [ROW, row(AMD64, 4, [8, -16, -8])], [row(AMD64, 4, [8]), ROW]],
    ids=["word size 3", "three words", "rows out of order"],
)
def malformed(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Write a file with two functions, of which the first is malformed."""
    functions = [Function(0x10, 8, request.param), Function(0x20, 8, [ROW])]
    symbols = [(b"bad", 0x10, 8), (b"good", 0x20, 8)]
    return elf(tmp_path / "file", AMD64, section(AMD64, functions, ra=-8), symbols=symbols)


def test_malformed_function(malformed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = looked_up(capsys, 2, malformed, "0x10", "0x20", "0x30")
    assert "0x20: " in said
    assert "0x30: " in said


def test_malformed_function_on_standard_input(malformed: Path) -> None:
    """Each address gets its line or its error; the first error used to end the command."""
    done = answered(malformed, "0x20\n0x10\n0x21\n0x10\n0x30\n")
    assert done.returncode == 2
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["0x20", "0x21", "0x30"]
    errors = done.stderr.splitlines()
    assert len(errors) == 2
    assert all(error.startswith(f"sframe-unwind: {malformed}: function at 0x10: ") for error in errors)


@pytest.mark.parametrize(("abi", "version"), [(abi.name, version) for abi in ABIS.values() for version in abi.versions])
def test_rows_of_readelf(capsys: pytest.CaptureFixture[str], abi: str, version: int) -> None:
    """Every row is found by its first address and by the last address before the next row."""
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
        # readelf of binutils 2.40 does not know where the return address of AMD64 is.
        known = "u" if version == 1 and ra == "f" else ra
        assert (int(start, 16), cfa, fp, known) == (printed.start, printed.cfa, printed.fp, printed.ra)
    names = {symbol.address: name for name, symbol in read_symbols(tools, file).items()}
    leaf = next(address for address, name in names.items() if name == "busy_leaf")
    assert f"{leaf:#x}: busy_leaf\n" in said


def test_number_of_thousands_of_digits(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lookup", str(small), "9" * 5000, f"first+{'9' * 5000}"]) == 2
    said = f"sframe-unwind: {small}: {'9' * 24}...: a number of 5000 digits is not an address\n"
    assert capsys.readouterr().err == said * 2


SECTIONS = "".join(
    f"""
    .section .text.{name}, "ax"
    .globl {name}
    .type {name}, @function
{name}: .cfi_startproc
    push %rbx
    .cfi_adjust_cfa_offset {offset}
    ret
    .cfi_endproc
    .size {name}, . - {name}
    """
    for name, offset in (("one", 8), ("two", 16))
)


def test_object_file_with_several_sections(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All its functions begin at 0, so numbers are ambiguous."""
    source, file = tmp_path / "two.s", tmp_path / "two.o"
    source.write_text(SECTIONS, encoding="ascii")
    run(tools_for("amd64", 3) / "as", "--gsframe", "-o", file, source)
    said = looked_up(capsys, 0, file, "two+1", ".text.one+0x1")
    assert ".text.two+0x1: two+0x1\n    function .text.two+0x0..0x2, 2 bytes\n    row .text.two+0x1: CFA sp+24," in said
    assert ".text.one+0x1: one+0x1\n    function .text.one+0x0..0x2, 2 bytes\n    row .text.one+0x1: CFA sp+16," in said
    assert main(["lookup", str(file), "0x1"]) == 2
    expected = "0x1: in an object file, expected a symbol or section+offset, as .text+0x1"
    assert capsys.readouterr().err == f"sframe-unwind: {file}: {expected}\n"


def test_object_file_with_one_section(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, file = tmp_path / "one.s", tmp_path / "one.o"
    one, _, _ = SECTIONS.partition("\n    .section .text.two")
    source.write_text(one.replace('.section .text.one, "ax"', ".text"), encoding="ascii")
    run(tools_for("amd64", 3) / "as", "--gsframe", "-o", file, source)
    assert looked_up(capsys, 0, file, "1").startswith(".text+0x1: one+0x1\n")


def test_plt_stubs_have_their_own_names(capsys: pytest.CaptureFixture[str]) -> None:
    """`_init`, which has no size, used to reach from .init into .plt."""
    program = build("plt")
    with elf_file.opened(program) as binary:
        section = binary.named(".plt")
    assert section is not None
    address = section.address
    assert looked_up(capsys, 0, program, hex(address)).startswith(f"{address:#x}: (no symbol)\n")
    assert looked_up(capsys, 0, program, "shared_apply@plt+4").partition("\n")[0].endswith(": shared_apply@plt+0x4")


def answered(file: Path, text: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sframe_unwind", "lookup", str(file), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=HANG, check=False)


def test_addresses_from_standard_input(small: Path) -> None:
    done = answered(small, "0x1014\n\n4128\nfirst+2\n0x1000\n0x1051\nnobody\n 0x1013 \n")
    assert done.stdout.splitlines() == [
        "0x1014: first+0x4: CFA sp+16, FP c-16, RA f",
        "0x1020: (no symbol): CFA sp+8, FP u, RA f",
        "0x1012: first+0x2: CFA sp+8, FP u, RA f",
        "0x1000: (no symbol): not covered: no SFrame function contains the address",
        "0x1051: evil\\x1b[2J\\n+0x1: not covered: the address lies before the first row of the function at 0x1050",
        "0x1013: first+0x3: CFA sp+8, FP u, RA f",
    ]
    assert done.stderr == f"sframe-unwind: {small}: nobody: neither an address nor a symbol of the file\n"
    assert done.returncode == 2
    assert answered(small, "0x1010\n").returncode == 0
    assert answered(small, "0x1000\n").returncode == 1


@pytest.mark.parametrize("text", ["0x1014", "0x1014\n", "0x1014\r\n", "\n0X001014\n", "0x" + "0" * 14 + "1014\n"])
def test_ways_to_end_a_line(small: Path, text: str) -> None:
    done = answered(small, text)
    assert (done.stdout, done.stderr) == ("0x1014: first+0x4: CFA sp+16, FP c-16, RA f\n", "")


def test_standard_input_that_is_no_text(small: Path) -> None:
    command = [sys.executable, "-m", "sframe_unwind", "lookup", str(small), "-"]
    lines = b"\xff\n" + b"1" * (1 << 21) + b"\n0x1014\n"
    done = subprocess.run(command, input=lines, capture_output=True, timeout=HANG, check=False)
    assert done.stdout == b"0x1014: first+0x4: CFA sp+16, FP c-16, RA f\n"
    first, second = done.stderr.decode().splitlines()
    assert first == f"sframe-unwind: {small}: \\xff: neither an address nor a symbol of the file"
    assert second.endswith("...: a number of 2097152 digits is not an address")
    assert done.returncode == 2


def test_closed_standard_input(small: Path) -> None:
    shell = f"{shlex.quote(sys.executable)} -m sframe_unwind lookup {shlex.quote(str(small))} - <&-"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, timeout=HANG, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "sframe-unwind: standard input is closed\n"


def test_answer_comes_before_the_next_question(small: Path) -> None:
    """Like addr2line: a program can keep the command running and send it addresses."""
    command = [sys.executable, "-m", "sframe_unwind", "lookup", str(small), "-"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    assert process.stdin is not None
    assert process.stdout is not None
    ending = threading.Timer(HANG, process.kill)
    ending.start()
    try:
        for question in ("0x1014", "first", "0x1000"):
            process.stdin.write(f"{question}\n")
            assert process.stdout.readline().startswith("0x1010: " if question == "first" else f"{question}: ")
        process.stdin.close()
        assert process.wait() == 1
    finally:
        ending.cancel()
        process.kill()


@pytest.mark.parametrize("abi", list(ABIS))
def test_many_addresses_have_the_answers_of_each(capsys: pytest.CaptureFixture[str], abi: str) -> None:
    """Each line has the data of the longer answer for a single address."""
    with toolchain_needed():
        file = build("free_walk", abi)
    with elf_file.opened(file) as binary:
        text = binary.named(".text")
    assert text is not None
    wanted = [hex(address) for address in range(text.address - 2, text.end + 2)]
    lines = answered(file, "\n".join(wanted)).stdout.splitlines()
    assert main(["lookup", str(file), *wanted]) == 1
    single = re.split(r"^(?=0x)", capsys.readouterr().out, flags=re.MULTILINE)[1:]
    assert len(lines) == len(single) == len(wanted)
    for line, answer in zip(lines, single):
        title, *rest = answer.splitlines()
        address, name, said = line.split(": ", 2)
        assert title.partition(": not covered")[0] in (f"{address}: {name}", f"{address}: {name.removesuffix('+0x0')}")
        assert said in (" ".join(answer.split()))
        assert bool(rest) == said.startswith("CFA") or "RA undefined" in said
