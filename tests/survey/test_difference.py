"""The differences of two surveys that `survey --diff` prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.cli import main
from sframe_unwind.survey.difference import plain
from tests.samples.build import build
from tests.survey.programs import plain_program, tar
from tests.survey.stores import query, survey


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/libc6_2.36-9+deb12u10_amd64.deb/usr/lib/libc.so.6", "libc6_amd64.deb/usr/lib/libc.so.6"),
        ("glibc-2.40-17.fc41.x86_64.rpm/lib64/libm.so.6", "glibc.x86_64.rpm/usr/lib64/libm.so.6"),
        ("zlib-1.3.1.tar.xz/libz.so.1.3.1", "zlib.tar.xz/libz.so.1"),
        ("tree/libfoo-2.0.so.0.200.1", "tree/libfoo-2.0.so.0"),
        ("bash_5.2-1_amd64.deb/bin/bash", "bash_amd64.deb/usr/bin/bash"),
        ("lib/x86_64-linux-gnu/libz.so.1.3", "usr/lib/x86_64-linux-gnu/libz.so.1"),
        ("libstdc++6_12.2.0-14_amd64.deb/x", "libstdc++6_amd64.deb/x"),
    ],
)
def test_versions_are_no_part_of_a_name(path: str, expected: str) -> None:
    assert plain(path) == expected


def package(folder: Path, name: str, **members: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(tar({f"usr/lib/{one}": data for one, data in members.items()}))
    return path


def test_update(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One program has other rows, one is the same, one is gone, and one is new."""
    good, bad = build("plt", version=3).read_bytes(), build("plt", version=2).read_bytes()
    plain_one = plain_program()
    old = package(tmp_path / "old", "some-1.0.tar", program=plain_one, same=plain_one + b"1", gone=good)
    new = package(tmp_path / "new", "some-1.1.tar", program=bad, same=plain_one + b"1", added=good)
    databases = tmp_path / "old.db", tmp_path / "new.db"
    survey(databases[0], old.parent)
    survey(databases[1], new.parent)
    assert main(["survey", "--diff", *map(str, databases)]) == 1
    told = capsys.readouterr().out
    lines = told.splitlines()
    assert lines[0] == "1 file is the same, 1 changed, 1 new, 1 gone"
    for column, database in enumerate(databases):
        ((total,),) = query(database, "SELECT sum(sframe) FROM files")
        row = next(line.split() for line in lines if line.split()[0] == "sframe")
        assert row[1 + column] == f"{total:,}"
    changed = lines[lines.index("changed:") + 1]
    assert changed.startswith("  some.tar/usr/lib/program: origin convert -> file, ")
    assert lines[lines.index("new:") + 1] == "  some.tar/usr/lib/added"
    assert lines[lines.index("gone:") + 1] == "  some.tar/usr/lib/gone"
    arisen = lines[lines.index("findings that arose:") + 1]
    assert arisen.startswith("  some.tar/usr/lib/")
    assert main(["survey", "--diff", str(databases[0]), str(databases[0])]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "3 files are the same, 0 changed, 0 new, 0 gone"
