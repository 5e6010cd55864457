"""Functions whose SFrame cannot be decoded: they are not compared, and all others are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.cli import main
from sframe_unwind.convert.kinds import SFRAME
from sframe_unwind.convert.source import read_source
from sframe_unwind.lint import lint
from sframe_unwind.verify import verify
from sframe_unwind.verify.verdict import Outcome
from tests.abis.rewrite import overwrite
from tests.samples.build import build

_FDE_TYPE = 3
"""Offset of the byte with the FDE type in the attributes of a version 3 FDE."""
_ATTRIBUTES = 5
_ROW_INFO = 1
"""Offset of the info byte in a row with a start of one byte."""


def damaged(folder: Path, where: int, value: int) -> tuple[Path, int]:
    """Return a program with one changed byte in its third function, and the address of that function.

    :param where: offset of the byte from the attributes of the function.
    """
    source = build("free_walk", "amd64", 3, "O0")
    (section,) = elf.load(source)
    (table,) = section.tables
    function = table.function(2)
    with elf.opened(source) as binary:
        content = bytearray(binary.read(binary.sframe_sections[0].offset, section.size))
    content[table.header.fres_start + function.fde.rows_offset - _ATTRIBUTES + where] = value
    program = Path(shutil.copy(source, folder / "program"))
    overwrite(program, bytes(content))
    return program, function.start


@pytest.mark.parametrize(
    ("where", "value", "why"),
    [(_ATTRIBUTES + _ROW_INFO, 0x63, "size"), (_FDE_TYPE, 7, "FDE type 7")],
    ids=["row", "FDE"],
)
def test_one_malformed_function(
    where: int, value: int, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, start = damaged(tmp_path, where, value)
    sound = {(one.spot, one.size): one.outcome for one in verify(build("free_walk", "amd64", 3, "O0")).functions}
    found = verify(program)
    assert {(one.spot, one.size) for one in found.functions} == set(sound)
    (lost,) = (one for one in found.functions if one.outcome is Outcome.NOT_COMPARED)
    assert lost.spot.address == start
    assert why in lost.reason
    others = {(one.spot, one.size): one.outcome for one in found.functions if one is not lost}
    assert others == {key: outcome for key, outcome in sound.items() if key != (lost.spot, lost.size)}
    assert main(["verify", str(program)]) == 1
    assert f"  not compared: {start:#x} " in capsys.readouterr().out


@pytest.mark.parametrize(("where", "value"), [(_ATTRIBUTES + _ROW_INFO, 0x63), (_FDE_TYPE, 7)], ids=["row", "FDE"])
def test_all_commands_lose_the_same(where: int, value: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, start = damaged(tmp_path, where, value)
    (judgement,) = lint(program).sections[0].judgements
    assert [loss.start for loss in judgement.losses] == [start]
    with elf.opened(program) as binary:
        assert [loss.start for loss in read_source(binary, SFRAME).losses] == [start]
    assert main(["dump", "--json", str(program)]) == 2
    (shown,) = json.loads(capsys.readouterr().out)["sections"]
    (section,) = elf.load(program)
    (table,) = section.tables
    everything = set(table.extents()[0])
    assert everything - {function["start"] for function in shown["functions"]} == {start}
