"""Finding functions by address in symbol tables."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.elf.symbols import NearSymbols, Symbol, Symbols, decoded
from sframe_unwind.errors import FileError
from tests.elf.objects import run
from tests.work import at_most_lines


def found(symbols: Symbols, address: int) -> str | None:
    return symbols.name(address)


def test_symbols_without_sizes_take_no_longer_than_others() -> None:
    """Each lookup used to scan all symbols."""
    count = 4_000
    symbols = Symbols([Symbol(16 * number, 0, True, f"f{number}") for number in range(count)])
    with at_most_lines(100 * count):
        for number in range(count - 1):
            assert found(symbols, 16 * number + 5) == f"f{number}+0x5"


def test_label_in_a_function_with_a_size() -> None:
    function, label = Symbol(0x10, 0x40, True, "function"), Symbol(0x20, 0, False, "label")
    symbols = Symbols([function, label, Symbol(0x60, 0, True, "end")])
    assert found(symbols, 0x24) == "function+0x14"
    assert found(symbols, 0x52) == "label+0x32"
    assert found(symbols, 0x60) == "end"


def test_symbol_without_a_size_ends_with_its_section() -> None:
    symbols = Symbols([Symbol(0x10, 0, True, "_init", limit=0x2B), Symbol(0x100, 4, True, "main", limit=0x200)])
    assert found(symbols, 0x2A) == "_init+0x1a"
    assert found(symbols, 0x2B) is None


@pytest.mark.parametrize("names", [("clone3", "__clone3", "__GI___clone3"), ("__GI___clone3", "clone3", "__clone3")])
def test_of_several_names_the_plain_one(names: tuple[str, ...]) -> None:
    symbols = Symbols([Symbol(0x10, 8, False, name) for name in names])
    assert found(symbols, 0x12) == "clone3+0x2"


def test_symbol_that_covers_a_range() -> None:
    whole, other = Symbol(0x10, 0x20, True, "whole"), Symbol(0x40, 0x10, True, "other")
    symbols = Symbols([whole, other])
    assert symbols.covering(0x10, 0x30) == whole
    assert symbols.covering(0x18, 0x30) == whole
    assert symbols.covering(0x10, 0x31) is None
    assert symbols.covering(0x20, 0x48) is None


@pytest.mark.parametrize("end", [b"\0", b""], ids=["one name", "no end"])
def test_symbols_that_share_a_long_name_are_refused(end: bytes) -> None:
    """3,000 symbols in a file of 1.1 MB took 3 GB and 17 seconds."""
    entries = [(1, 2, 0, 1, number, 1) for number in range(3000)]
    with pytest.raises(FileError, match=r"use each byte of their 1,000,00\d bytes of names more than 16 times"):
        decoded(range(3000), entries, b"\0" + b"a" * 1_000_000 + end)
    assert len(decoded(range(16), entries, b"\0" + b"a" * 1_000_000 + b"\0")) == 16
    assert len(decoded(range(3000), entries, b"\0init\0")) == 3000


SOURCE = """\
        .globl whole, alias, _alias
        .type whole, @function
        .type alias, @function
        .type _alias, @function
whole:
_alias:
alias:  nop
label:  nop
        {labels}
        nop
        .size whole, . - whole
        .size alias, . - alias
        .size _alias, . - _alias
$x:     nop
        .globl bare
bare:   nop
        .section .text.other, "ax"
other:  nop
        nop
"""


@pytest.mark.parametrize("labels", [1, 60], ids=["few labels", "more labels than are decoded at first"])
def test_symbols_near_an_address_are_those_of_the_whole_table(tmp_path: Path, labels: int) -> None:
    """Of a few addresses, only the names near them are decoded."""
    source, program = tmp_path / "program.s", tmp_path / "program"
    source.write_text(SOURCE.format(labels="\n".join(f"l{number}: nop" for number in range(labels))), encoding="ascii")
    run("gcc", "-nostdlib", "-static", "-o", program, source)
    at_every_address(program)


def test_symbols_near_an_address_of_a_large_program(tmp_path: Path) -> None:
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text("int main(void) { return 0; }", encoding="ascii")
    run("gcc", "-static", "-o", program, source)
    at_every_address(program, 2000)


def at_every_address(program: Path, chosen: int | None = None) -> None:
    with elf.opened(program) as binary:
        near, symbols = NearSymbols(binary, binary.layout), binary.symbols
        first, end = binary.layout.code[0][0] - 2, binary.layout.code[-1][1] + 2
    addresses = range(first, end) if chosen is None else random.Random(1).sample(range(first, end), chosen)
    for address in (0, *addresses, (1 << 64) - 1):
        assert near.find(address) == symbols.find(address), hex(address)
