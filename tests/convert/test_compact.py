"""``convert --compact``: readelf prints the same rules before and after, ``lint`` accepts the result, and it runs."""

from __future__ import annotations

import json
import subprocess
from itertools import islice
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.arch import Arch, aarch64, amd64, s390x
from sframe_unwind.cli import main
from sframe_unwind.convert.report import Report
from sframe_unwind.convert.source import DWARF
from sframe_unwind.convert.to_sframe import Wanted, convert_to_sframe
from sframe_unwind.elf import ElfBinary
from sframe_unwind.errors import TranslationError
from sframe_unwind.lint import PROFILES, Profile, lint
from sframe_unwind.lint.verdict import Outcome
from sframe_unwind.sframe.constants import AbiNumber, FdeType, PauthKey, PcType
from sframe_unwind.sframe.encode import FunctionSpec, RowSpec, SectionSpec, TableSpec, encode, usual_table
from sframe_unwind.sframe.fre import MAX_SHARED_ROWS
from sframe_unwind.sframe.listing import listed_functions
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.sharing import with_shared_rows
from sframe_unwind.translation.compact import MAX_ROWS, compacted
from sframe_unwind.translation.description import of_sframe
from sframe_unwind.translation.proof import prove
from sframe_unwind.verify import verify
from tests.cfi.libraries import FOLDERS
from tests.convert.libraries import can_load, system_files
from tests.convert.samples import Rules, rules
from tests.samples import readelf
from tests.samples.build import build, run_command, toolchain
from tests.samples.catalogue import ABIS

SECONDS = 60
AMD64 = AbiNumber.AMD64_ENDIAN_LITTLE


def function(start: int, size: int, *rows: tuple[int, int]) -> FunctionSpec:
    """Return a function whose rows have the given starts and CFA offsets from SP."""
    return FunctionSpec(start, size, tuple(RowSpec(at, 0x03, (offset,)) for at, offset in rows))


def always(*_: int) -> bool:
    return True


def never(*_: int) -> bool:
    return False


def by_readelf(path: Path, abi: str) -> Rules:
    """Return the row that readelf prints for each address that it describes."""
    found: Rules = {}
    for one in readelf.read_sframe(toolchain(abi, 3), path).functions:
        if one.mask:
            continue
        ends = [*(row.start for row in one.rows[1:]), one.start + one.size]
        for row, end in zip(one.rows, ends):
            found.update(dict.fromkeys(range(row.start, end), (row.cfa, row.fp, row.ra)))
    return found


def without(said: Rules, report: Report) -> Rules:
    """Return what is said of code other than the padding that the report names."""
    assert report.compact is not None
    padding = {pc for start, end in report.compact.padding for pc in range(start, end)}
    assert padding <= said.keys()
    return {pc: rule for pc, rule in said.items() if pc not in padding}


def outcomes(path: Path, profile: Profile) -> list[tuple[Outcome, int]]:
    """Return what a reader makes of the sections of a file, and how many bytes of code it loses."""
    found = [judgement for section in lint(path, [profile]).sections for judgement in section.judgements]
    return [(judgement.outcome, judgement.lost) for judgement in found]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("abi", list(ABIS))
def test_the_same_rules_and_it_runs(tmp_path: Path, abi: str, version: int) -> None:
    program = build("callback" if ABIS[abi].has_libc else "free_walk", abi, 3, "O2")
    plain, compact = tmp_path / "plain", tmp_path / "compact"
    convert_to_sframe(program, plain, Wanted(version, source=DWARF))
    report = convert_to_sframe(program, compact, Wanted(version, source=DWARF, max_rows=MAX_ROWS))
    assert report.compact is not None
    assert report.compact.sizes.plain > report.compact.sizes.divided == report.size
    assert without(rules(compact), report) == rules(plain)
    if version == 3:
        assert without(by_readelf(compact, abi), report) == by_readelf(plain, abi)
    for name in ("spec", "glibc" if version == 2 else "linux-user"):
        before, after = (outcomes(path, PROFILES[name]) for path in (plain, compact))
        assert before == after
    runs = [
        subprocess.run(run_command(path, abi), capture_output=True, timeout=SECONDS, check=False)
        for path in (program, compact)
    ]
    assert (runs[0].returncode, runs[0].stdout) == (runs[1].returncode, runs[1].stdout)


def test_libraries_of_the_system(tmp_path: Path) -> None:
    for path in islice(system_files(1), 2):
        copy = tmp_path / path.name
        report = convert_to_sframe(path, copy, Wanted(max_rows=MAX_ROWS))
        assert report.is_whole
        assert report.compact is not None
        assert report.compact.sizes.divided < 0.72 * report.compact.sizes.plain
        assert report.compact.after.rows_read < 1.2 * report.compact.before.rows_read
        verdict = verify(copy)
        assert verdict.agrees
        assert verdict.in_part == 0
        assert ".so" not in path.name or can_load(copy)
    environment = {"LD_LIBRARY_PATH": str(tmp_path)}
    shown = subprocess.run(
        ["/bin/cat", "/proc/self/maps"], env=environment, capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert str(tmp_path / "libc.so.6") in shown.stdout
    assert by_readelf(tmp_path / "libc.so.6", "amd64")


def test_a_section_that_is_there(tmp_path: Path) -> None:
    program, once, twice = build("callback", "amd64", 3, "O2"), tmp_path / "once", tmp_path / "twice"
    first = convert_to_sframe(program, once, Wanted(max_rows=MAX_ROWS))
    assert first.made == "SFrame version 3 from version 3"
    assert first.size < first.source_size
    again = convert_to_sframe(once, twice, Wanted(max_rows=MAX_ROWS))
    assert again.size <= first.size


def test_rows_are_shared_with_big_endian_machines_on_request_only(tmp_path: Path) -> None:
    """GNU readelf of a little-endian machine swaps the bytes of each function's rows in place."""
    library, output = FOLDERS["s390x"] / "libthread_db.so.1", tmp_path / "copy"
    report = convert_to_sframe(library, output, Wanted(max_rows=MAX_ROWS))
    assert report.compact is not None
    assert not report.compact.shares_rows
    assert readelf.read_sframe(toolchain("s390x", 3), output).functions
    report = convert_to_sframe(library, output, Wanted(max_rows=MAX_ROWS, consumers=("linux-user",)))
    assert report.compact is not None
    assert report.compact.shares_rows
    assert report.compact.sizes.shared < report.compact.sizes.plain
    with pytest.raises(ValueError, match="decode failure"):
        readelf.read_sframe(toolchain("s390x", 3), output)


def starts(table: TableSpec) -> list[list[int]]:
    """Return start and end of each entry, and where its rows begin."""
    return [[one.start, one.start + one.size, *(row.start for row in one.rows)] for one in table.functions]


def test_item_37_functions_next_to_each_other() -> None:
    table = usual_table(3, AMD64, [function(0x100, 16, (0, 8), (4, 16)), function(0x110, 16, (0, 16), (8, 8))])
    assert starts(compacted(table, always).table) == [[0x100, 0x120, 0, 4, 24]]
    first, second = table.functions
    apart = [
        second._replace(pc_type=PcType.MASK, repetition_size=8),
        second._replace(signal=True),
        second._replace(pauth_key=PauthKey.B),
        second._replace(fde_type=FdeType.FLEX),
        second._replace(rows=()),
        second._replace(rows=(RowSpec(1, 0x03, (8,)),)),
    ]
    for second in apart:
        other = compacted(table._replace(functions=(first, second)), always)
        assert [one.start for one in other.table.functions] == [0x100, 0x110], second
    assert starts(compacted(table, never).table) == starts(table)


def test_an_entry_has_at_most_so_many_rows_or_one_function() -> None:
    one, other = function(0x100, 16, (0, 8), (4, 16), (6, 24)), function(0x110, 16, (0, 32), (8, 40))
    table = usual_table(3, AMD64, [one, other])
    assert starts(compacted(table, always, max_rows=5).table) == [[0x100, 0x120, 0, 4, 6, 16, 24]]
    assert starts(compacted(table, always, max_rows=2).table) == starts(table)


def test_functions_that_begin_alike_are_divided() -> None:
    """Their first rows become one copy; an entry in the middle of a function begins where the rule changes."""
    begin = [(2 * number, 8 * number + 8) for number in range(12)]
    functions = [
        function(0x1000 * n, 0x200, *begin, *((0x100 + n * k, n + k) for k in range(1, 4))) for n in range(1, 9)
    ]
    table = usual_table(3, AMD64, functions)
    result = compacted(table, never)
    assert result.sizes.divided < 0.7 * result.sizes.shared
    shared = [one for one in result.table.functions if len(one.rows) == len(begin)]
    assert [one.start for one in shared] == [one.start for one in functions]
    assert {one.rows_at for one in shared} == {shared[0].rows_at}
    rest = [one for one in result.table.functions if one not in shared]
    assert [(one.start, one.rows[0].start) for one in rest] == [
        (one.start + 0x100 + n, 0) for n, one in enumerate(functions, 1)
    ]
    decoded = [Section(encode(SectionSpec(0x10000, (one,))), 0x10000) for one in (table, result.table)]
    before, after = ([of_sframe(one) for one in listed_functions([section])] for section in decoded)
    assert prove(before, after, [], amd64.ARCH) == 8 * len(functions[0].rows)


def test_an_entry_gets_wider_addresses_only_if_that_is_smaller() -> None:
    rows = [(number, 8 * number + 8) for number in range(4)]
    table = usual_table(
        3, AMD64, [function(0x100 + 300 * n, 300, *((at, off + n) for at, off in rows)) for n in (0, 1)]
    )
    result = compacted(table, always)
    assert len(result.table.functions) == 1  # an entry of 21 bytes against 8 times one byte
    assert result.sizes.divided == 28 + 16 + 5 + 8 * (2 + 1 + 1) < result.sizes.shared
    equal = usual_table(3, AMD64, [function(0x100 + 300 * n, 300, *rows) for n in range(9)])
    result = compacted(equal, always)
    assert {one.rows_at for one in result.table.functions} == {0}  # several entries for one list of rows
    assert len(result.table.functions) == 3
    assert result.sizes.divided == 28 + 3 * 16 + 5 + 12 * (2 + 1 + 1) < result.sizes.shared == 28 + 9 * 16 + 5 + 4 * 3


def test_padding_is_reported_and_must_be_named_in_the_proof() -> None:
    table = usual_table(
        3, AMD64, [function(0x100, 10, (0, 8)), function(0x110, 16, (0, 16)), function(0x120, 4, (0, 8))]
    )
    result = compacted(table, always)
    assert result.padding == ((0x10A, 0x110),)
    decoded = [Section(encode(SectionSpec(0x1000, (one,))), 0x1000) for one in (table, result.table)]
    before, after = ([of_sframe(one) for one in listed_functions([section])] for section in decoded)
    assert prove(before, after, [], amd64.ARCH, set(result.padding)) == 3
    with pytest.raises(TranslationError, match="the result describes 0x10a to 0x110, no source does"):
        prove(before, after, [], amd64.ARCH)
    wrong = before[2]._replace(rules=before[1].rules)
    with pytest.raises(TranslationError, match="at 0x120 the source says"):
        prove([*before[:2], wrong], after, [], amd64.ARCH, set(result.padding))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_item_37_shared_rows(version: int) -> None:
    one, other = [(0, 8), (1, 16)], [(0, 8), (1, 16), (9, 8)]
    table = usual_table(version, AMD64, [function(0x100 * n, 32, *rows) for n, rows in enumerate((one, other, one), 1)])
    places = [function.rows_at for function in with_shared_rows(table).functions]
    # The attributes of version 3 include the number of rows, and come before the rows.
    assert places == ([0, 0, 0] if version < 3 else [0, 11, 0])
    data = [encode(SectionSpec(0x1000, (made,))) for made in (table, with_shared_rows(table))]
    assert len(data[1]) < len(data[0])
    plain, shared = ([entry.rows() for entry in Section(each, 0x1000).functions()] for each in data)
    assert plain == shared


def test_item_37_functions_with_many_rows_stay_readable() -> None:
    rows = [(number, 8 * (number % 9)) for number in range(MAX_SHARED_ROWS + 1)]
    for shown in (rows, rows[1:]):
        table = usual_table(3, AMD64, [function(0x1000 * n, 0x1000, *shown) for n in range(400)])
        shared = with_shared_rows(table)
        assert len({one.rows_at for one in shared.functions}) == (400 if shown is rows else 1)
        section = Section(encode(SectionSpec(0x1000, (shared,))), 0x1000)
        assert len(list(listed_functions([section]))) == 400


@pytest.mark.parametrize(
    ("arch", "padding", "code"),
    [
        (amd64.ARCH, "90 6690 662e0f1f840000000000 0f1f4000 cccc", "c3"),
        (aarch64.LITTLE, "1f2003d5 00000000", "c0035fd6"),
        (s390x.ARCH, "0707 0700 47000000 c00400000000", "07fe"),
    ],
)
def test_padding(arch: Arch, padding: str, code: str) -> None:
    assert arch.padding.fullmatch(bytes.fromhex(padding))
    assert not arch.padding.fullmatch(bytes.fromhex(code + padding))
    assert not arch.padding.fullmatch(bytes.fromhex(padding + code))


def test_padding_of_a_file() -> None:
    with elf.opened(build("callback", "amd64", 3, "O2")) as binary:
        assert isinstance(binary, ElfBinary)
        (start, end) = next(extent for extent in binary.layout.code if extent[1] - extent[0] > 64)
        assert binary.padding.fills(start, start)
        assert not binary.padding.fills(start, end - 1)  # code
        assert not binary.padding.fills(end, end)  # the next section begins there
        assert not binary.padding.fills(start, start - 1)
        assert not binary.padding.fills(0, 0)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, output = str(build("callback", "amd64", 3, "O2")), str(tmp_path / "copy")
    assert main(["convert", program, "-o", output, "--compact"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  compact: ")]
    assert len(lines) == 3
    assert main(["convert", "--json", "--compact=16", program, "-o", output]) == 0
    compact = json.loads(capsys.readouterr().out)["compact"]
    assert compact["after"]["entries"] < compact["before"]["entries"]
    assert main(["convert", "--json", program, "-o", output]) == 0
    assert json.loads(capsys.readouterr().out)["compact"] is None
    assert main(["convert", "--compact", program, "-o", output]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("  compact: ")] == lines
    for wrong in ("0", "256", "x", ""):
        with pytest.raises(SystemExit, match="2"):
            main(["convert", f"--compact={wrong}", "-o", output, program])
        assert f"{wrong}: not a number of rows from 1 to 255, as in --compact=16" in capsys.readouterr().err
    assert main(["convert", "--to", "debug_frame", "--compact=16", program, "-o", output]) == 2
    assert "--compact has no meaning with --to debug_frame" in capsys.readouterr().err
