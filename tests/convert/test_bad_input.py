"""Files that cannot be converted give one clear line, and no file is left."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from lab.drive.cutting import without_section_headers
from sframe_unwind.cli import main
from sframe_unwind.convert.elf_copy import ElfCopy, NewSection
from sframe_unwind.elf import load, opened
from sframe_unwind.elf.constants import PT_GNU_SFRAME, SHT_GNU_SFRAME
from sframe_unwind.sframe.encode import SectionSpec, describe, encode, without_layout
from sframe_unwind.translation.to_sframe import Made, make_table
from tests.cli.sections import AMD64, Function, row, section
from tests.cli.sections import elf as sframe_file
from tests.elf.objects import compile_object, tools_for
from tests.samples.build import build
from tests.work import at_most_lines

_MUTATIONS = 300


def leftovers(folder: Path, *known: str) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name not in known]


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["convert", *map(str, arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return str(printed.err)


def test_files_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, output = tmp_path / "text", tmp_path / "out"
    text.write_text("not an ELF file")
    assert "not a readable ELF file" in refused(capsys, text, "-o", output)
    assert "No such file" in refused(capsys, tmp_path / "missing", "-o", output)
    program = build("leaf", "amd64", 3)
    (tmp_path / "half").write_bytes(program.read_bytes()[:2000])
    refused(capsys, tmp_path / "half", "-o", output)
    (tmp_path / "half").write_bytes(program.read_bytes())
    without_section_headers(tmp_path / "half")
    assert "half: no section headers, which tell where" in refused(capsys, tmp_path / "half", "-o", output)
    relocatable = compile_object(tools_for("amd64", 3), "amd64", "int f(void) { return 1; }", tmp_path / "f.o")
    assert "an object file: it has SFrame already" in refused(capsys, relocatable, "-o", output)
    assert "a relocatable object file" in refused(capsys, relocatable, "-o", output, "--to", "debug_frame")
    assert leftovers(tmp_path, "text", "half", "f.o", "f.c") == []


def test_outputs_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = build("leaf", "amd64", 3)
    assert "not a regular file" in refused(capsys, program, "-o", "/dev/null")
    assert Path("/dev/null").is_char_device()
    assert "not a regular file" in refused(capsys, program, "-o", tmp_path)
    assert "cannot be written" in refused(capsys, program, "-o", tmp_path / "no" / "folder")
    long = tmp_path / ("x" * 300)
    assert f"{long}: cannot be written: File name too long" in refused(capsys, program, "-o", long)
    assert leftovers(tmp_path) == []


def test_nothing_is_written_where_the_proof_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, output = build("leaf", "amd64", 3), tmp_path / "out"
    output.write_text("as before")

    def wrong(*arguments: object) -> Made:
        made = make_table(*arguments)  # type: ignore[arg-type]  # those that it was called with
        first, *others = made.table.functions
        assert first.rows[0].words
        changed = first.rows[0]._replace(words=(first.rows[0].words[0] + 8, *first.rows[0].words[1:]))
        functions = (first._replace(rows=(changed, *first.rows[1:])), *others)
        return made._replace(table=made.table._replace(functions=functions))

    monkeypatch.setattr("sframe_unwind.convert.to_sframe.make_table", wrong)
    assert re.search(r"at 0x[0-9a-f]+ the source says", refused(capsys, program, "-o", output))
    assert output.read_text() == "as before"
    assert leftovers(tmp_path, "out") == []


def test_an_entry_that_is_larger_than_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    huge = Function(0, 0xFFFFFFF0, [row(AMD64, 0, [8])])
    file = sframe_file(tmp_path / "huge", AMD64, section(AMD64, [huge], ra=-8))
    with at_most_lines(1_000_000):
        refused(capsys, file, "-o", tmp_path / "out")
    assert leftovers(tmp_path, "huge") == []


def test_functions_above_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Overlapping functions are refused: to compare each over its whole length would take too long."""
    program, file = build("free_walk", "amd64", 3), tmp_path / "file"
    (section,) = load(program)
    table = without_layout(describe(section).tables[0])
    code = table.functions[0]._replace(size=0x200)
    functions = [code._replace(start=code.start + number, size=code.size - number) for number in range(64)]
    with opened(program) as binary:
        copy = ElfCopy(binary, ".sframe", PT_GNU_SFRAME)
        data = encode(SectionSpec(copy.address, (table._replace(functions=tuple(functions)),)))
        copy.write(file, NewSection(".sframe", SHT_GNU_SFRAME, data, PT_GNU_SFRAME))
    assert "SFrame describes functions of" in refused(capsys, file, "-o", tmp_path / "out")


@pytest.mark.parametrize("source", ["dwarf", "sframe"])
def test_damaged_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str) -> None:
    """Random bytes of the file are changed, most of them in its headers and its unwind data."""
    contents = build("free_walk", "amd64", 3).read_bytes()
    random = Random(source)
    damaged, output = tmp_path / "damaged", tmp_path / "out"
    seen = set()
    places = [*range(64), *range(contents.rindex(b".shstrtab"), len(contents))]
    for wanted in (b"\xe2\xde\x03", b"\x01zR\0"):
        at = contents.index(wanted)
        places += range(at - 8, at + 256)
    for number in range(_MUTATIONS):
        changed = bytearray(contents)
        for _ in range(random.choice((1, 1, 1, 4))):
            changed[random.choice(places)] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
        damaged.write_bytes(changed)
        status = main(["convert", "--from", source, str(damaged), "-o", str(output)])
        error = capsys.readouterr().err
        assert "internal error" not in error, f"{number}: {error}"
        assert output.exists() == (status < 2), number
        output.unlink(missing_ok=True)
        assert leftovers(tmp_path, "damaged") == [], number
        seen.add(status)
    assert seen == {0, 1, 2}
