"""``convert --compact``: readelf prints the same rules before and after, ``lint`` accepts the result, and it runs."""

from __future__ import annotations

import json
import subprocess
from itertools import islice
from pathlib import Path

import pytest

from lab.cfi.libraries import FOLDERS
from lab.convert.libraries import can_load, system_files
from lab.convert.samples import Rules, rules
from sframe_unwind.cli import main
from sframe_unwind.convert.kinds import DWARF
from sframe_unwind.convert.report import Report
from sframe_unwind.convert.to_sframe import Wanted, convert_to_sframe
from sframe_unwind.lint import PROFILES, Profile, lint
from sframe_unwind.lint.verdict import Outcome
from sframe_unwind.sframe.constants import AbiNumber
from sframe_unwind.translation.compact import MAX_ROWS
from sframe_unwind.verify import verify
from tests.hanging import HANG
from tests.missing import absent
from tests.samples import readelf
from tests.samples.build import build, run_command, toolchain
from tests.samples.catalogue import ABIS

SECONDS = HANG
AMD64 = AbiNumber.AMD64_ENDIAN_LITTLE


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
    """Return the rules for code other than the padding that the report names."""
    assert report.compact is not None
    padding = {pc for start, end in report.compact.padding for pc in range(start, end)}
    assert padding <= said.keys()
    return {pc: rule for pc, rule in said.items() if pc not in padding}


def outcomes(path: Path, profile: Profile) -> list[tuple[Outcome, int]]:
    """Return a reader's verdicts on the sections of a file, and the number of bytes of code that it loses."""
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
    if not library.exists():
        absent(f"{library} is not there: rows that functions of s390x share stay untested")
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
