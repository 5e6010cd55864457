"""Members of archives, compared with the list of GNU ar."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sframe_unwind.elf.archive import members
from tests.elf.objects import run
from tests.hanging import HANG


@pytest.mark.parametrize("options", ["rc", "rcT", "rcS"])
def test_names_of_every_length_around_the_field(options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The field has 16 bytes, and GNU ar ends a name with a slash."""
    names = ["x" * length for length in (1, 2, 13, 14, 15, 16, 17, 100)]
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
    monkeypatch.chdir(tmp_path)
    run("ar", options, "lib.a", *names)
    listed = subprocess.run(["ar", "t", "lib.a"], check=True, capture_output=True, text=True, timeout=HANG).stdout
    assert listed.splitlines() == names
    found = list(members(Path("lib.a")))
    assert [member.name for member in found] == names
    for member in found:
        with member.file.open("rb") as stream:
            stream.seek(member.offset)
            assert stream.read(-1 if member.size is None else member.size) == member.name.encode()
