"""SFrame in object files and archives, compared with that of GNU as, and with the output of GNU ld from either."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.cli import main
from sframe_unwind.elf.constants import SHT_SYMTAB, SYMBOL
from sframe_unwind.verify import verify
from tests.elf.objects import compile_both, link, run, tools_for
from tests.hanging import HANG

ABIS = ("amd64", "aarch64", "aarch64_be", "s390x")
GROUPS = """
template <int N> [[gnu::noipa]] int f(int *p) {{ int b[N] = {{ *p }}; return b[0] + N; }}
int {name}(int *p) {{ return f<10>(p) + 1; }}
"""


def by_assembler(abi: str, folder: Path) -> list[Path]:
    """Return two object files with SFrame of GNU as."""
    return compile_both(tools_for(abi, 3), abi, folder)


def without(abi: str, objects: list[Path]) -> list[Path]:
    """Return the same files without SFrame."""
    bare = [file.with_suffix(".bare.o") for file in objects]
    for file, copy in zip(objects, bare):
        run(tools_for(abi, 3) / "objcopy", "--remove-section", ".sframe", file, copy)
    return bare


def converted(files: list[Path]) -> list[Path]:
    copies = [file.with_suffix(".converted.o") for file in files]
    for file, copy in zip(files, copies):
        assert main(["convert", str(file), "-o", str(copy)]) == 0
    return copies


def sframe(path: Path, abi: str) -> str:
    """Return the section in the notation of readelf of binutils 2.47."""
    done = subprocess.run(
        [tools_for(abi, 3) / "readelf", "--sframe", path], check=True, capture_output=True, text=True, timeout=HANG
    )
    return done.stdout


@pytest.mark.parametrize("abi", ABIS)
def test_linked_with_gnu_ld(abi: str, tmp_path: Path) -> None:
    objects = by_assembler(abi, tmp_path)
    copies = converted(without(abi, objects))
    tools = tools_for(abi, 3)
    program = link(tools, abi, tmp_path / "program", *copies)
    expected = link(tools, abi, tmp_path / "expected", *objects)
    assert "func idx [5]" in sframe(expected, abi)
    assert sframe(program, abi) == sframe(expected, abi)
    assert verify(program).agrees
    # One of each kind.
    mixed = link(tools, abi, tmp_path / "mixed", objects[0], copies[1])
    assert sframe(mixed, abi) == sframe(expected, abi)


@pytest.mark.parametrize("abi", ABIS)
def test_copy_is_as_the_assembler_writes_it(abi: str, tmp_path: Path) -> None:
    for file in by_assembler(abi, tmp_path):
        (copy,) = converted(without(abi, [file]))
        (expected,), (found,) = elf.load(file, lazy=False), elf.load(copy, lazy=False)
        assert found.tables[0].header == expected.tables[0].header
        assert [function.rows() for function in found.functions()] == [
            function.rows() for function in expected.functions()
        ]
        assert relocations(copy, abi) == relocations(file, abi)
        assert verify(copy).agrees


def relocations(path: Path, abi: str) -> list[str]:
    """Return the relocations of `.sframe`, as readelf prints them."""
    done = subprocess.run(
        [tools_for(abi, 3) / "readelf", "-rW", path], check=True, capture_output=True, text=True, timeout=HANG
    )
    return done.stdout.partition("'.rela.sframe'")[2].partition("\n\n")[0].splitlines()[1:]


def test_functions_in_section_groups(tmp_path: Path) -> None:
    """The linker keeps one of two groups, and its SFrame."""
    tools, files = tools_for("amd64", 3), []
    for name in ("one", "two"):
        source = tmp_path / f"{name}.cc"
        source.write_text(GROUPS.format(name=name), encoding="ascii")
        files.append(source.with_suffix(".o"))
        run("g++", "-O2", "-ffreestanding", "-fno-pie", f"-B{tools}/", "-c", source, "-o", files[-1])
    program = link(tools, "amd64", tmp_path / "program", *converted(files), options=("-e", "_Z3onePi"))
    (section,) = elf.load(program)
    assert len(section.tables[0]) == 3
    assert verify(program).agrees


def test_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = by_assembler("amd64", tmp_path)
    note = tmp_path / "a note with a long name.txt"
    note.write_text("odd", encoding="ascii")
    library, copy = tmp_path / "libtwo.a", tmp_path / "copy.a"
    run("ar", "rcs", library, *without("amd64", objects), note)
    assert main(["convert", "--json", str(library), "-o", str(copy)]) == 0
    members = json.loads(capsys.readouterr().out)["members"]
    assert [member["file"] for member in members] == [f"{library}(one.bare.o)", f"{library}(two.bare.o)"]
    listed = subprocess.run(["ar", "p", copy, note.name], check=True, capture_output=True, text=True, timeout=HANG)
    assert listed.stdout == "odd"
    tools = tools_for("amd64", 3)
    program = link(tools, "amd64", tmp_path / "program", copy, options=("-e", "start", "-u", "start"))
    expected = link(tools, "amd64", tmp_path / "expected", *reversed(objects), options=("-e", "start", "-u", "start"))
    assert sframe(program, "amd64") == sframe(expected, "amd64")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--as", "section"], "only a copy can be made of it"),
        (["--compact"], "only a copy can be made of it"),
        (["--version", "2"], "version 3 only, which GNU ld 2.46 and later link"),
    ],
)
def test_what_an_object_file_cannot_become(
    options: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = without("amd64", by_assembler("amd64", tmp_path)[:1])
    assert main(["convert", str(file), "-o", str(tmp_path / "out"), *options]) == 2
    line = capsys.readouterr().err
    assert f"{file}: an object file: " in line
    assert expected in line
    assert not (tmp_path / "out").exists()


def test_too_many_sections(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A copy has no room for two more headers: the number of a section has 16 bits in a symbol."""
    source, file = tmp_path / "many.s", tmp_path / "many.o"
    sections = "".join(f".section s{number}\n" for number in range(65_280))
    source.write_text(f'{sections}.section last,"ax"\n.cfi_startproc\nret\n.cfi_endproc\n', encoding="ascii")
    run(tools_for("amd64", 3) / "as", source, "-o", file)
    assert main(["convert", str(file), "-o", str(tmp_path / "copy.o")]) == 2
    error = "more than 65,277 sections, which a copy cannot have"
    assert capsys.readouterr().err == f"sframe-unwind: {file}: {error}\n"


def test_symbols_outside_their_sections_are_no_anchors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = without("amd64", by_assembler("amd64", tmp_path)[:1])
    content = bytearray(file.read_bytes())
    with elf.opened(file) as binary:
        (symbols,) = (section for section in binary.sections if section.type == SHT_SYMTAB)
    for entry in range(symbols.offset, symbols.offset + symbols.size, struct.calcsize("<" + SYMBOL)):
        struct.pack_into("<Q", content, entry + 8, 1 << 63)  # st_value
    file.write_bytes(content)
    assert main(["convert", str(file), "-o", str(tmp_path / "out")]) == 2
    assert "no local symbol in the section with the function at " in capsys.readouterr().err


@pytest.mark.parametrize("to", ["sframe", "debug_frame"])
def test_an_archive_is_not_replaced_by_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], to: str) -> None:
    """Its members would be lost, among which may be the file itself."""
    one, *_ = objects = without("amd64", by_assembler("amd64", tmp_path))
    library = tmp_path / "library.a"
    run("ar", "rcs", library, *objects)
    before = library.read_bytes()
    assert main(["convert", str(one), "-o", str(library), "--to", to]) == 2
    said = "an archive, which is not overwritten by what is made of one file"
    assert capsys.readouterr().err == f"sframe-unwind: convert: -o {library}: {said}\n"
    assert library.read_bytes() == before
    assert main(["convert", str(library), "-o", str(library)]) == 0
    assert library.read_bytes() != before


def test_archives_that_cannot_be_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = by_assembler("amd64", tmp_path)
    output = tmp_path / "out.a"
    thin, whole, damaged = tmp_path / "thin.a", tmp_path / "whole.a", tmp_path / "damaged.a"
    run("ar", "rcsT", thin, *objects)
    run("ar", "rcs", whole, *objects)
    run("ar", "rcs", damaged, *without("amd64", objects))
    content = bytearray(damaged.read_bytes())
    content[8 + 60 + 4 + 3] ^= 1  # the place of the first symbol's member
    damaged.write_bytes(content)
    for library, expected in (
        (thin, "a thin archive: convert its members"),
        (whole, "no object file with DWARF CFI and without SFrame in it"),
        (damaged, "the table of symbols refers to "),
    ):
        assert main(["convert", str(library), "-o", str(output)]) == 2
        assert expected in capsys.readouterr().err
        assert not output.exists()
