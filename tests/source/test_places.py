"""Lines and inlined functions of addresses, compared with addr2line, or with GDB where addr2line fails; damage."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.report.demangle import demangle
from sframe_unwind.source.debug_info import DebugInfo
from tests.abis.debuggers import newest
from tests.gdb.driver import call
from tests.hanging import HANG
from tests.missing import toolchain_needed
from tests.pairing import paired
from tools import binutils, producers

CHECKOUT = Path(__file__).resolve().parents[2]
SMALL, LARGE = CHECKOUT / "tests" / "process" / "inlined.cpp", CHECKOUT / "lab" / "drive" / "sources" / "trees.cc"
SMALL_FORMATS = {
    "version 5": ["-gdwarf-5"],
    "version 4": ["-gdwarf-4"],
    "version 3": ["-gdwarf-3", "-gstrict-dwarf"],
    "version 2": ["-gdwarf-2"],
    "compressed": ["-g", "-gz=zlib"],
    "type units": ["-gdwarf-4", "-fdebug-types-section"],
    "optimised at the link": ["-g", "-flto"],
}
LARGE_FORMATS = {
    "version 5": ["-O1", "-gdwarf-5"],
    "version 4": ["-O2", "-gdwarf-4", "-ffunction-sections", "-Wl,--gc-sections"],
}
ADDRESSES = 600
"""How many addresses of a large program are compared."""

Answer = list[tuple[str, str]]
"""Function, and file and line, from the innermost inlined function outward."""


def run(*command: str | Path, given: str = "") -> str:
    done = subprocess.run(
        list(map(str, command)), input=given, check=True, capture_output=True, text=True, timeout=HANG
    )
    return done.stdout


def addr2line(program: Path, addresses: Sequence[int]) -> list[Answer]:
    """Return the answers of the newest addr2line; 2.40 gives the wrong file for some rows of version 5."""
    with toolchain_needed():
        root = binutils.provide("2.47", "x86_64").parents[1] / "root"
    libraries = root / "usr/lib/x86_64-linux-gnu"
    loader, tool = libraries / "ld-linux-x86-64.so.2", root / "usr/bin/x86_64-linux-gnu-addr2line"
    questions = "\n".join(map(hex, addresses))
    said = run(loader, "--library-path", libraries, tool, "-aif", "-e", program, given=questions).splitlines()
    starts = [number for number, line in enumerate(said) if line.startswith("0x")]
    assert len(starts) == len(addresses)
    answers = (said[start + 1 : end] for start, end in zip(starts, [*starts[1:], len(said)]))
    return [[(name, place.partition(" (disc")[0]) for name, place in zip(one[::2], one[1::2])] for one in answers]


def ours(program: Path, addresses: Sequence[int]) -> list[Answer]:
    info = DebugInfo(program)
    return [[(place.function, f"{place.file}:{place.line}") for place in info.places(address)] for address in addresses]


def code_of(program: Path) -> range:
    with elf.opened(program) as binary:
        text = binary.named(".text")
    assert text is not None
    return range(text.address, text.end)


def compared(program: Path, addresses: Sequence[int]) -> int:
    """Compare with addr2line; return how many addresses are in inlined functions."""
    with elf.opened(program) as binary:
        symbols = {symbol.name for symbol in binary.symbols}
    inlined = 0
    for address, found, expected in paired(addresses, ours(program, addresses), addr2line(program, addresses)):
        if not found:  # code without debug information
            assert expected[0][1].endswith((":0", ":?")), hex(address)
            continue
        assert [place for _, place in found] == [place for _, place in expected], hex(address)
        for (name, _), (other, _) in zip(found, expected):
            # Where there is no linkage name, addr2line takes the symbol, of the innermost inlined function too.
            assert name == other or other in symbols, hex(address)
        inlined += len(found) > 1
    return inlined


@pytest.mark.parametrize("name", SMALL_FORMATS)
def test_every_address_is_where_addr2line_has_it(tmp_path: Path, name: str) -> None:
    program = tmp_path / "program"
    run("g++", "-O2", *SMALL_FORMATS[name], SMALL, "-o", program)
    assert compared(program, code_of(program)) > 5


def test_units_without_aranges(tmp_path: Path) -> None:
    program, without = tmp_path / "program", tmp_path / "without"
    run("g++", "-O2", "-g", SMALL, "-o", program)
    run("objcopy", "--remove-section=.debug_aranges", program, without)
    assert ours(without, code_of(without)) == ours(program, code_of(program))


@pytest.mark.parametrize("name", LARGE_FORMATS)
def test_deeply_inlined_functions_are_those_of_addr2line(tmp_path: Path, name: str) -> None:
    """A program with many rows that begin no statement, and many addresses with several rows."""
    program = tmp_path / "program"
    run("g++", *LARGE_FORMATS[name], LARGE, "-o", program)
    code = code_of(program)
    assert compared(program, sorted(random.Random(0).sample(code, ADDRESSES))) > ADDRESSES / 2


def clang(source: Path, program: Path, *options: str) -> None:
    with toolchain_needed():
        compiler = producers.provide() / "clang"
    compiled = program.with_suffix(".o")
    run(compiler, "-O2", "-fPIC", *options, "-c", source, "-o", compiled)
    run("g++", compiled, "-o", program)


def test_clang_without_siblings_and_aranges(tmp_path: Path) -> None:
    program = tmp_path / "program"
    clang(SMALL, program, "-gdwarf-4")
    assert compared(program, code_of(program)) > 2


def test_indexed_addresses_strings_and_ranges_of_clang(tmp_path: Path) -> None:
    """binutils 2.47 and elfutils 0.188 do not find the inlined functions in them; GDB does."""
    program = tmp_path / "program"
    clang(SMALL, program, "-gdwarf-5")
    code, inlined = code_of(program), 0
    function = "tests.source.inside.places.collect"
    expected = call(newest("amd64"), function, executable=str(program), start=code.start, end=code.stop)
    for address, found, (names, path, line) in paired(code, ours(program, code), expected):
        shown = [demangle(name).partition("(")[0] for name, _ in found if name]
        assert shown == [name.partition("(")[0] for name in names], hex(address)
        inlined += len(shown) == 3
        assert not found or found[0][1] == f"{path}:{line}", hex(address)
    assert inlined > 2


def test_damaged_debug_information_is_survived(tmp_path: Path) -> None:
    program, damaged = tmp_path / "program", tmp_path / "damaged"
    run("g++", "-O2", "-g", SMALL, "-o", program)
    content = program.read_bytes()
    with elf.opened(program) as binary:
        sections = [section for section in binary.sections if section.name.startswith(".debug_")]
        parts = [(section.offset, section.size) for section in sections]
        (main,) = (symbol for symbol in binary.symbols if symbol.name == "main")
    chance, answered = random.Random(0), 0
    for _ in range(400):
        changed = bytearray(content)
        for _ in range(chance.choice((1, 4, 16))):
            offset, size = chance.choice(parts)
            changed[offset + chance.randrange(size)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        damaged.write_bytes(changed)
        info = DebugInfo(damaged)
        answered += bool([info.places(address) for address in range(main.address, main.address + main.size)][5])
    assert 100 < answered < 400
