"""What cannot be converted: one clear line, and no file left behind."""

from __future__ import annotations

import re
import time
from pathlib import Path
from random import Random

import pytest

from sframe_unwind.arch.amd64 import ARCH, FP, SP
from sframe_unwind.cfi.rules import NoRule
from sframe_unwind.cli import main
from sframe_unwind.convert.elf_copy import ElfCopy, NewSection
from sframe_unwind.elf import load
from sframe_unwind.elf.constants import PT_GNU_SFRAME, SHT_GNU_SFRAME
from sframe_unwind.errors import FormatError, TranslationError
from sframe_unwind.sframe.constants import AbiNumber, PauthKey, PcType
from sframe_unwind.sframe.encode import SectionSpec, describe, encode, usual_table, without_layout
from sframe_unwind.sframe.encode_rule import function as function_from_rules
from sframe_unwind.sframe.section import Section
from sframe_unwind.translation.description import Description, Loss, of_sframe
from sframe_unwind.translation.proof import prove
from sframe_unwind.translation.to_sframe import Made, Target, make_table
from sframe_unwind.unwind_rule import COMPUTED, OUTERMOST, UNDEFINED, RegisterRule, UnwindRule, saved_at_cfa
from tests.cli.sections import AMD64, Function, row, section
from tests.cli.sections import elf as sframe_file
from tests.elf.objects import compile_object, tools_for
from tests.samples.build import build

_SECONDS = 30
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
    text.write_text("no ELF file")
    assert "not a readable ELF file" in refused(capsys, text, "-o", output)
    assert "No such file" in refused(capsys, tmp_path / "missing", "-o", output)
    program = build("leaf", "amd64", 3)
    (tmp_path / "half").write_bytes(program.read_bytes()[:2000])
    refused(capsys, tmp_path / "half", "-o", output)
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


RULE = UnwindRule(RegisterRule(SP, 8, False), saved_at_cfa(-8), None)


def description(*rules: tuple[int, object], start: int = 0x1000, size: int = 32, signal: bool = False) -> Description:
    offsets, said = zip(*rules)
    return Description(start, start + size, (list(offsets), list(said)), signal, PauthKey.A)


@pytest.mark.parametrize(
    ("rule", "target", "reason"),
    [
        (NoRule("computed: DW_OP_div"), Target(3), "computed: DW_OP_div"),
        (RULE._replace(fp=UNDEFINED), Target(3), "rbp cannot be restored"),
        (RULE._replace(fp=COMPUTED), Target(3), "rbp is computed by an expression"),
        (RULE._replace(ra=None), Target(3), "at +0x0: RA not saved, but the header says that it is always at CFA-8"),
        (OUTERMOST, Target(2), "the return address is undefined, for which version 2 has no row"),
        (
            RULE._replace(cfa=RegisterRule(10, 0, False)),
            Target(3, flexible=False),
            "at +0x0: CFA r10+0, expected SP or FP plus an offset; it takes flexible rows",
        ),
        (
            RULE._replace(cfa=RegisterRule(FP, -16, True)),
            Target(2, flexible=False),
            "at +0x0: CFA [rbp-16], expected SP or FP plus an offset",
        ),
    ],
)
def test_reasons_for_what_is_left_out(rule: object, target: Target, reason: str) -> None:
    made = make_table([description((0, rule))], ARCH, target)
    assert made.losses == (Loss(0x1000, 0x1020, reason),)
    assert made.table.functions == ()


def test_more_reasons() -> None:
    flexible = (4, RULE._replace(cfa=RegisterRule(10, 0, False)))
    mixed = description((0, OUTERMOST), flexible)
    assert make_table([mixed], ARCH, Target(3)).losses == ()
    (loss,) = make_table([mixed], ARCH, Target(3, outermost_in_flexible=False)).losses
    assert loss.reason == "the return address is undefined in one row, and another takes flexible rows"
    (loss,) = make_table([description((0, RULE), signal=True)], ARCH, Target(2)).losses
    assert loss.reason == "a signal trampoline, which version 2 cannot mark"
    (loss,) = make_table([description((0, RULE)), description((0, RULE), start=0x1010)], ARCH, Target(3)).losses
    assert loss == Loss(0x1010, 0x1030, "overlaps the function before it")
    many = description(*((number, RULE) for number in range(1 << 16)), size=1 << 16)
    (loss,) = make_table([many], ARCH, Target(3)).losses
    assert loss.reason == "65,536 rows, more than 65,535"


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([description((0, RULE), (9, OUTERMOST))], "at 0x1008 the source says"),
        ([description((0, RULE), (8, OUTERMOST), signal=True)], "is not marked as its source is"),
        ([description((8, OUTERMOST))], "at 0x1000 the source says .* the result None"),
        ([description((0, RULE), size=8)], "does not describe the function at 0x1000 exactly once"),
        ([description((0, RULE), (8, OUTERMOST))] * 2, "does not describe the function at 0x1000 exactly once"),
        ([description((0, RULE), start=0x2000)], "the result describes 0x2000 to 0x2020, no source does"),
        ([], "does not describe the function at 0x1000 exactly once"),
    ],
)
def test_proof_finds_what_differs(result: list[Description], message: str) -> None:
    source = [description((0, RULE), (8, OUTERMOST))]
    assert prove(source, source, [], ARCH) == 2
    assert prove(source, [], [Loss(0x1000, 0x1020, "named")], ARCH) == 0
    with pytest.raises(TranslationError, match=message):
        prove(source, result, [], ARCH)


def test_an_entry_that_is_larger_than_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    huge = Function(0, 0xFFFFFFF0, [row(AMD64, 0, [8])])
    file = sframe_file(tmp_path / "huge", AMD64, section(AMD64, [huge], ra=-8))
    started = time.monotonic()
    refused(capsys, file, "-o", tmp_path / "out")
    assert time.monotonic() - started < _SECONDS
    assert leftovers(tmp_path, "huge") == []


def test_functions_above_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each would be compared over all of its length."""
    program, file = build("free_walk", "amd64", 3), tmp_path / "file"
    copy = ElfCopy(program.read_bytes(), "little", ".sframe", PT_GNU_SFRAME)
    (section,) = load(program)
    table = without_layout(describe(section).tables[0])
    code = table.functions[0]._replace(size=0x200)
    functions = [code._replace(start=code.start + number, size=code.size - number) for number in range(64)]
    data = encode(SectionSpec(copy.address, (table._replace(functions=tuple(functions)),)))
    copy.write(file, NewSection(".sframe", SHT_GNU_SFRAME, data, PT_GNU_SFRAME))
    assert "SFrame describes functions of" in refused(capsys, file, "-o", tmp_path / "out")


def test_rows_that_repeat_too_often() -> None:
    table = usual_table(3, AbiNumber.AMD64_ENDIAN_LITTLE)
    function = function_from_rules(table, 0x1000, 1 << 31, [(0, RULE)])
    mask = function._replace(pc_type=PcType.MASK, repetition_size=1)
    (decoded,) = Section(encode(SectionSpec(0x100, (table._replace(functions=(mask,)),))), 0x100).functions()
    with pytest.raises(FormatError, match="rows that repeat to more than 1,048,576"):
        of_sframe(decoded)


@pytest.mark.parametrize("pc_type", PcType)
def test_function_without_rows(pc_type: PcType) -> None:
    table = usual_table(3, AbiNumber.AMD64_ENDIAN_LITTLE)
    function = function_from_rules(table, 0x1000, 64, [])._replace(pc_type=pc_type, repetition_size=16)
    (decoded,) = Section(encode(SectionSpec(0x100, (table._replace(functions=(function,)),))), 0x100).functions()
    assert not any(of_sframe(decoded).rules)


@pytest.mark.parametrize("source", ["dwarf", "sframe"])
def test_damaged_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str) -> None:
    """Bytes of the file changed by chance, most of them where its headers and its unwind data are."""
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
        started = time.monotonic()
        status = main(["convert", "--from", source, str(damaged), "-o", str(output)])
        error = capsys.readouterr().err
        assert time.monotonic() - started < _SECONDS, number
        assert "internal error" not in error, f"{number}: {error}"
        assert output.exists() == (status < 2), number
        output.unlink(missing_ok=True)
        assert leftovers(tmp_path, "damaged") == [], number
        seen.add(status)
    assert seen == {0, 1, 2}
