"""Functions that one of the two tables covers in part only."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sframe_unwind import elf
from sframe_unwind.address import gaps, merged, overlap
from sframe_unwind.cli import main
from sframe_unwind.sframe.encode import FunctionSpec, describe, encode
from sframe_unwind.verify import verify
from sframe_unwind.verify.verdict import Function, Outcome
from tests.abis.rewrite import overwrite
from tests.browser import render
from tests.elf.objects import run, tools_for
from tests.samples.build import build

Change = Callable[[FunctionSpec], FunctionSpec]


def changed(folder: Path, change: Change) -> Path:
    """Return a program whose SFrame functions were changed."""
    source, program = build("free_walk", "amd64", 3, "O0"), folder / "program"
    (section,) = elf.load(source)
    spec = describe(section)
    (table,) = spec.tables
    content = encode(spec._replace(tables=(table._replace(functions=tuple(map(change, table.functions))),)))
    assert len(content) == section.size
    overwrite(Path(shutil.copy(source, program)), content)
    return program


def in_part(program: Path) -> list[Function]:
    return [function for function in verify(program).functions if function.outcome is Outcome.IN_PART]


def one_byte(function: FunctionSpec) -> FunctionSpec:
    return function._replace(size=1)


def one_late(function: FunctionSpec) -> FunctionSpec:
    first, *rest = function.rows
    return function._replace(rows=(first._replace(start=1), *(row for row in rest if row.start > 1)))


def test_every_size_is_one_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = changed(tmp_path, one_byte)
    (section,) = elf.load(build("free_walk", "amd64", 3, "O0"))
    functions = [function for function in section.tables[0].functions() if function.fde.size > 1]
    expected = {(function.start + 1, function.fde.size - 1) for function in functions}
    assert {(function.spot.address, function.size) for function in in_part(program)} == expected
    assert main(["verify", str(program)]) == 1
    out = capsys.readouterr().out
    assert f", {len(expected)} covered in part; " in out
    start, end = functions[0].start, functions[0].end
    assert f"(SFrame has nothing for {start + 1:#x}..{end:#x} of {start:#x}..{end:#x})\n" in out


def test_first_row_begins_late(tmp_path: Path) -> None:
    for function in in_part(changed(tmp_path, one_late)):
        assert [gap.size for gap in function.gaps] == [1]
        assert "+" not in function.name


def test_cfi_leaves_out_the_end(tmp_path: Path) -> None:
    """SFrame's function is longer than that of the CFI."""
    program = changed(tmp_path, lambda function: function._replace(size=function.size + 3))
    found = in_part(program)
    assert found
    assert all(function.reason.startswith("DWARF CFI has nothing for ") for function in found)
    # The rest is padding, or the next function, which has CFI of its own.
    assert {function.size for function in found} <= {1, 2, 3}


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = changed(tmp_path, one_byte)
    assert main(["verify", "--json", str(program)]) == 1
    (file,) = json.loads(capsys.readouterr().out)["files"]
    listed: list[dict[str, Any]] = file["covered_in_part"]
    assert len(listed) == file["functions"]["covered_in_part"] == len(in_part(program))
    for entry, function in zip(listed, in_part(program)):
        assert entry["ranges"] == [{"address": function.spot.address, "section": ".text", "size": function.size}]


def test_page(tmp_path: Path) -> None:
    program, page = changed(tmp_path, one_byte), tmp_path / "page.html"
    assert main(["verify", "--html", str(page), str(program)]) == 1
    shown = render(page)
    found = in_part(program)
    assert shown.by_id("verdict").text.endswith(f"no disagreements; {len(found)} functions covered in part")
    assert shown.by_id("verdict").attributes["class"] == "bad"
    assert f"covered in part{len(found)} functions" in shown.by_id("legend").text
    assert found[0].reason in shown.by_id("functions").text


def test_what_gnu_ld_leaves_out_of_a_plt(tmp_path: Path) -> None:
    """GNU ld 2.40 describes three of the four stubs in `.plt.sec`, which have one FDE."""
    source, made, program = tmp_path / "calls.s", tmp_path / "calls.o", tmp_path / "calls.so"
    calls = "".join(f"call {name}@plt\n" for name in ("one", "two", "three", "four"))
    source.write_text(f".globl f\nf:\n.cfi_startproc\n{calls}ret\n.cfi_endproc\n", encoding="ascii")
    tools = tools_for("amd64", 1)
    run(tools / "as", "--gsframe", "-o", made, source)
    run(tools / "ld", "-shared", "-z", "ibtplt", "-o", program, made)
    (found,) = in_part(program)
    assert found.spot.section == ".plt.sec"
    assert found.size == 16


RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)).map(lambda pair: (pair[0], sum(pair))), max_size=8)


@given(RANGES, st.integers(0, 40), st.integers(1, 20))
def test_gaps_are_what_is_not_covered(ranges: list[tuple[int, int]], start: int, size: int) -> None:
    covered = merged(ranges)
    described = {address for low, high in ranges for address in range(low, high)}
    whole = set(range(start, start + size))
    found = gaps((start, start + size), covered)
    assert {address for low, high in found for address in range(low, high)} == whole - described
    assert all(low < high for low, high in found)
    assert overlap([(start, start + size)], covered) == len(whole & described)
