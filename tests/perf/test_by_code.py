"""SFrame or CFI is made wrong, so their stacks differ; the machine code shows which of them is right."""

from __future__ import annotations

import functools
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from sframe_unwind.cli import main
from sframe_unwind.errors import MissingExtraError
from sframe_unwind.perf import by_code
from tests.gdb.programs import built
from tests.missing import package_needed
from tests.perf.emulated import Steps, stepped
from tests.verify.planting import plant

FP = ("fp", "fp-mended")
"""Methods for which the code is not checked."""
STEPS = Steps("free_walk", "innermost", most=12, copy=2048)


@functools.cache
def recording() -> bytes:
    return stepped(STEPS, "amd64").recording


def with_wrong_sframe(program: Path, target: Path) -> None:
    plant(program, target, "cfa")


def with_wrong_cfi(program: Path, target: Path) -> None:
    """Add 8 to each ``DW_CFA_def_cfa_offset`` after ``DW_CFA_advance_loc``."""
    with program.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".eh_frame")
        offset, old = section["sh_offset"], section.data()
    new = re.sub(rb"([\x41-\x7f]\x0e)([\x08-\x70])", lambda found: found[1] + bytes([found[2][0] + 8]), old)
    assert new != old
    shutil.copy(program, target)
    with target.open("r+b") as stream:
        stream.seek(offset)
        stream.write(new)


Change = Callable[[Path, Path], None]


def changed_recording(folder: Path, make: Change) -> Path:
    """Return the recording with another program in place of the recorded one."""
    program = built(STEPS.sample, "amd64", 3)
    target = folder / "sysroot" / str(program).lstrip("/")
    target.parent.mkdir(parents=True)
    make(program, target)
    path = folder / "perf.data"
    path.write_bytes(recording())
    return path


def run(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["perf", str(path), "--sysroot", str(path.parent / "sysroot"), *options]) == 0
    return str(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("make", "right", "said"),
    [
        (with_wrong_sframe, "dwarf", "by the code, SFrame is wrong"),
        (with_wrong_cfi, "sframe", "by the code, the CFI is wrong"),
    ],
)
def test_who_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Change, right: str, said: str) -> None:
    package_needed("pyvex")
    path = changed_recording(tmp_path, make)
    printed = json.loads(run(path, capsys, "--json"))
    asked = [one for one in printed["blockers"] if "right" in one]
    # SFrame before DWARF takes what the code proves.
    both = {"sframe+dwarf"} if right == "sframe" else set()
    assert {one["method"] for one in asked} == {"sframe", "sframe-linux", "sframe+fp", *both}
    assert {one["right"] for one in asked} == {right}
    for method, counts in printed["methods"].items():
        assert counts["wrong"] == sum(one["samples"] for one in asked if one["method"] == method) or method in FP
    assert said in run(path, capsys, "--wide")


def test_without_the_extra(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> str:
        raise MissingExtraError("pyvex")

    monkeypatch.setattr(by_code, "function_at", missing)
    path = changed_recording(tmp_path, with_wrong_sframe)
    printed = json.loads(run(path, capsys, "--json"))
    assert printed["methods"]["sframe"]["wrong"]
    assert not any("right" in one for one in printed["blockers"])
    assert "the table says which is right after pip install pyvex 'bitstring<5' capstone" in run(path, capsys)
