"""The vDSO of this machine, in recordings that went through a pipe."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from sframe_unwind.perf import own_vdso
from tests.perf.writer import Event, Writer

REGISTERS = {8: 0, 7: 0x7FFF00001000, 6: 0}


@pytest.mark.parametrize(
    ("with_build_id", "host", "is_found"),
    [
        (True, "elsewhere", True),
        (False, os.uname().nodename, True),
        (False, "elsewhere", False),
    ],
)
def test_the_vdso_of_this_machine_is_found(
    with_build_id: bool,
    host: str,
    is_found: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # perf keeps its copies there
    own = own_vdso.finder(True)("")
    assert own is not None
    writer = Writer("little", "x86_64", [Event(regs_user=0b111000000)])
    writer.host(host, os.uname().release)
    at = 0x7F0000000000
    writer.mmap2(1, at, 0x2000, 0, "[vdso]", build_id=own.build_id if with_build_id else "")
    code, _ = own.sections[".text"]
    writer.sample(1, 0, {**REGISTERS, 8: at + code + 1}, (at + code).to_bytes(8, "little") * 4, size=64)
    path = tmp_path / "perf.data"
    path.write_bytes(writer.pipe())
    assert main(["perf", str(path), "--json", "--method", "dwarf", "--debug-dir", str(tmp_path)]) == 0
    reasons = {one["reason"] for one in json.loads(capsys.readouterr().out)["blockers"]}
    assert ("the vDSO was not found" in reasons) != is_found


def test_another_vdso_is_not_used() -> None:
    assert own_vdso.finder(True)("00" * 20) is None
    assert own_vdso.finder(False)("") is None
