"""Relocatable object files and the outputs of linkers, compared with their symbols and with each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.elf import opened
from sframe_unwind.elf.constants import SHT_REL, SHT_RELA
from sframe_unwind.errors import FormatError
from sframe_unwind.sframe.constants import AbiNumber, Flag
from sframe_unwind.sframe.encode import FunctionSpec, RowSpec, SectionSpec, encode, usual_table
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Match, Miss
from sframe_unwind.unwind_rule import UnwindRule
from tests.elf.objects import NAMES, compile_both, link, run, tools_for
from tests.samples.catalogue import ABIS
from tests.samples.readelf import Symbol, read_symbols

EVERY = [(abi.name, version) for abi in ABIS.values() for version in abi.versions]
VERSION_3 = [(abi, version) for abi, version in EVERY if version == 3]
BEFORE_3 = [(abi, version) for abi, version in EVERY if version < 3]

Rows = list[tuple[int, UnwindRule]]


class Objects:
    """The two sources, compiled."""

    def __init__(self, abi: str, version: int, folder: Path) -> None:
        self.abi = abi
        self.folder = folder
        self.tools = tools_for(abi, version)
        self.files = compile_both(self.tools, abi, folder)

    def link(self, name: str, *options: str) -> Path:
        return link(self.tools, self.abi, self.folder / name, *self.files, options=options or ("-e", "start"))


def load(file: Path) -> Section:
    (section,) = elf.load(file)
    assert section.rest is None
    return section


def named(tools: Path, file: Path, section: Section) -> dict[str, Rows]:
    """Return the rows of the named functions; check their addresses and sizes against the symbols."""
    symbols: dict[str, Symbol] = read_symbols(tools, file)
    rows = {}
    for function in section.functions():
        fitting = [name for name in NAMES if symbols.get(name) == Symbol(function.start, function.fde.size)]
        for name in fitting:
            rows[name] = list(zip(*function.table.rows(function)))
    return rows


@pytest.mark.parametrize(("abi", "version"), EVERY)
def test_functions_of_an_object_file_are_at_their_symbols(abi: str, version: int, tmp_path: Path) -> None:
    """An address in an object file is an offset into the section that has the function, as in symbols."""
    made = Objects(abi, version, tmp_path)
    for file, names in zip(made.files, (("first", "second"), ("use", "start"))):
        section = load(file)
        assert section.tables[0].header.version == version
        assert set(names) <= set(named(made.tools, file, section))
        assert len(list(section.functions())) == 3


@pytest.mark.parametrize(("abi", "version"), EVERY)
def test_an_object_file_says_what_the_program_says(abi: str, version: int, tmp_path: Path) -> None:
    made = Objects(abi, version, tmp_path)
    program = made.link("program")
    linked = named(made.tools, program, load(program))
    apart = {name: rows for file in made.files for name, rows in named(made.tools, file, load(file)).items()}
    assert set(linked) == set(NAMES)
    assert linked == apart


@pytest.mark.parametrize(("abi", "version"), VERSION_3)
def test_item_04_output_of_ld_r(abi: str, version: int, tmp_path: Path) -> None:
    made = Objects(abi, version, tmp_path)
    whole, program = made.link("whole.o", "-r"), made.link("program")
    section = load(whole)
    assert len(section.tables) == 1
    assert named(made.tools, whole, section) == named(made.tools, program, load(program))


@pytest.mark.parametrize(("abi", "version"), BEFORE_3)
def test_item_04_output_of_ld_r_with_misplaced_relocations(abi: str, version: int, tmp_path: Path) -> None:
    """GNU ld 2.40 and 2.44 leave the relocations of later inputs at the places where these tables would have been.

    The relocations overwrite rows, so nothing in the section can be trusted.
    """
    made = Objects(abi, version, tmp_path)
    with pytest.raises(FormatError, match=r"relocation that is not for the start field .*\(\.sframe offset 0x"):
        elf.load(made.link("whole.o", "-r"))


@pytest.mark.parametrize(("abi", "version"), BEFORE_3)
def test_output_of_ld_r_from_one_file(abi: str, version: int, tmp_path: Path) -> None:
    made = Objects(abi, version, tmp_path)
    whole = link(made.tools, abi, tmp_path / "whole.o", made.files[0], options=("-r",))
    assert named(made.tools, whole, load(whole)) == named(made.tools, made.files[0], load(made.files[0]))


def without_knowing(made: Objects) -> Path:
    """Link the program by a linker that does not know SFrame, and treats the sections like any others."""
    for file in made.files:
        run(made.tools / "objcopy", "--rename-section", ".sframe=.other,alloc,load,readonly,data,contents", file)
    program = made.link("program")
    run(made.tools / "objcopy", "--rename-section", ".other=.sframe", program)
    return program


@pytest.mark.parametrize(("abi", "version"), VERSION_3)
def test_item_03_concatenated_by_a_linker_that_does_not_know_sframe(abi: str, version: int, tmp_path: Path) -> None:
    made = Objects(abi, version, tmp_path)
    expected = named(made.tools, made.link("program"), load(made.link("program")))
    program = without_knowing(made)
    section = load(program)
    assert len(section.tables) == 2
    assert named(made.tools, program, section) == expected
    symbols = read_symbols(made.tools, program)
    for name in NAMES:
        match = section.lookup(symbols[name].address + symbols[name].size - 1)
        assert isinstance(match, Match)
        assert match.function.start == symbols[name].address


@pytest.mark.parametrize(("abi", "version"), BEFORE_3)
def test_item_03_concatenated_before_errata_1(abi: str, version: int, tmp_path: Path) -> None:
    made = Objects(abi, version, tmp_path)
    program = without_knowing(made)
    section = load(program)
    assert len(section.tables) == 2
    assert set(named(made.tools, program, section)) == set(NAMES)


ROW = (RowSpec(0, 3, (8,)),)


def assembly(group: str, symbol: str, size: int) -> str:
    """Return a section group with a function and its own SFrame section."""
    table = usual_table(2, AbiNumber.AMD64_ENDIAN_LITTLE, [FunctionSpec(28, size, ROW)])
    content = encode(SectionSpec(0, (table._replace(flags=Flag.FDE_FUNC_START_PCREL),)))
    assert content[28:32] == bytes(4)
    rest = ", ".join(map(str, content[32:]))
    return f"""
        .section .text.{group}, "axG", @progbits, {group}, comdat
        .skip {size}
        {symbol}: .skip {size}
        .size {symbol}, {size}
        .globl {symbol}
        .section .sframe, "aG", @progbits, {group}, comdat
        .byte {", ".join(map(str, content[:28]))}
        .long {symbol} - .
        .byte {rest}
    """


def test_each_of_several_sections_has_its_own_relocations(tmp_path: Path) -> None:
    """Section groups give an object file several sections of one name."""
    tools = tools_for("amd64", 3)
    source = tmp_path / "groups.s"
    source.write_text(assembly("g1", "first", 16) + assembly("g2", "second", 40), encoding="ascii")
    run(tools / "as", "-o", tmp_path / "groups.o", source)
    sections = elf.load(tmp_path / "groups.o")
    found = [(function.start, function.fde.size) for section in sections for function in section.functions()]
    assert found == [(16, 16), (40, 40)]


def test_a_program_is_not_relocated_twice(tmp_path: Path) -> None:
    """`--emit-relocs` leaves the relocations in a linked file, where they have been applied."""
    made = Objects("amd64", 3, tmp_path)
    program = made.link("program", "-e", "start", "--emit-relocs")
    assert set(named(made.tools, program, load(program))) == set(NAMES)


def test_item_29_a_section_of_no_size_in_an_object_file(tmp_path: Path) -> None:
    """An empty section of the type that GNU as gives SFrame has no data, and is no error."""
    tools = tools_for("amd64", 3)
    source = tmp_path / "empty.s"
    source.write_text('.text\nnop\n.section .sframe, "a", @0x6ffffff4\n', encoding="ascii")
    run(tools / "as", "-o", tmp_path / "empty.o", source)
    section = load(tmp_path / "empty.o")
    assert (section.size, section.tables, section.arch) == (0, [], None)
    assert isinstance(section.lookup(0), Miss)


SHARED = """
        .section .text.shared, "axG", @progbits, shared, comdat
        .globl shared
        .type shared, @function
shared: .cfi_startproc
        nop
        ret
        .cfi_endproc
        .size shared, . - shared
        .text
        .globl {name}
        .type {name}, @function
{name}: .cfi_startproc
        call shared
        ret
        .cfi_endproc
        .size {name}, . - {name}
"""
"""A function, and in a section group, one that every object file has; the linker keeps only one of these."""


@pytest.mark.parametrize(
    ("version", "options"), [(2, ("-e", "one")), (3, ("-e", "one")), (3, ("-r",))], ids=["2", "3", "3 by ld -r"]
)
def test_item_29_a_function_of_a_discarded_group(version: int, options: tuple[str, ...], tmp_path: Path) -> None:
    """The SFrame of the second object file refers to a function that the linker left out."""
    tools = tools_for("amd64", version)
    files = []
    for name in ("one", "two"):
        source = tmp_path / f"{name}.s"
        source.write_text(SHARED.format(name=name), encoding="ascii")
        files.append(tmp_path / f"{name}.o")
        run(tools / "as", "--gsframe", "-o", files[-1], source)
        assert len(list(load(files[-1]).functions())) == 2
    whole = link(tools, "amd64", tmp_path / "whole", *files, options=options)
    symbols = read_symbols(tools, whole)
    found = sorted((function.start, function.fde.size) for function in load(whole).functions())
    assert found == sorted((symbols[name].address, symbols[name].size) for name in ("one", "two", "shared"))


def test_relocations_without_addends_are_left_out(tmp_path: Path) -> None:
    """Their records have another size, and no ABI of SFrame uses them."""
    file = Objects("amd64", 3, tmp_path).files[0]
    content = bytearray(file.read_bytes())
    with opened(file) as binary:
        tables = [section for section in binary.sections if section.type == SHT_RELA]
        number = next(section.info for section in tables if list(binary.relocations.of(section.info)))
        start = binary.header.shoff
    for table in tables:
        at = start + 64 * table.number + 4
        assert int.from_bytes(content[at : at + 4], "little") == SHT_RELA
        content[at : at + 4] = SHT_REL.to_bytes(4, "little")
    file.write_bytes(content)
    with opened(file) as binary:
        assert list(binary.relocations.of(number)) == []
