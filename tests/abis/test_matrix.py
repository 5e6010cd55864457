"""For each ABI, version, debugger, sample and variant: SFrame's stacks equal GDB's own and the expected ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import pytest

from tests import schemas
from tests.abis.cells import ENCODED, Cell, cells, stops
from tests.abis.debuggers import debugger, described, sysroot
from tests.abis.native import first_wrong, is_wrong
from tests.abis.rewrite import rewritten_copy
from tests.abis.summary import CELL
from tests.expectations import WITHOUT_CFI, Stop, matches
from tests.gdb.driver import call
from tests.gdb.programs import built
from tests.gdb.stacks import check_unwinders, names_in, text_address
from tests.pairing import paired
from tests.samples import readelf
from tests.samples.build import toolchain
from tests.samples.catalogue import SAMPLES


@pytest.mark.parametrize("cell", list(cells()), ids="{0.abi}-v{0.version}-{0.debugger}-{0.variant}".format)
def test_cell(cell: Cell, tmp_path: Path, record_property: Callable[[str, Any], None]) -> None:
    record_property(CELL, json.dumps({**cell._asdict(), "passed": 0, "failed": []}))
    gdb = debugger(cell.debugger, cell.abi)
    chosen = stops(cell)
    originals = [built(stop.sample, cell.abi, producer(cell), cell.variant) for stop in chosen]
    paths = [placed(original, cell, tmp_path / str(number)) for number, original in enumerate(originals)]
    programs = [described(stop, path, cell.abi, cell.debugger) for stop, path in zip(chosen, paths)]
    answers = call(gdb, "tests.abis.inside.stops.collect", programs=programs, sysroot=sysroot(cell.abi))
    failures = {}
    for stop, original, answer in paired(chosen, originals, answers):
        try:
            check(stop, cell, original, answer)
        except AssertionError as error:
            failures[stop.name] = f"{error}\n{json.dumps(answer)[:2000]}"
    passed = len(chosen) - len(failures)
    record_property(CELL, json.dumps({**cell._asdict(), "passed": passed, "failed": list(failures)}))
    assert not failures, "\n".join(f"{name}: {what}" for name, what in failures.items())


def producer(cell: Cell) -> int:
    """Return the version that the assembler writes, if the encoder writes the cell's own version."""
    return 3 if (cell.abi, cell.version) in ENCODED else cell.version


def placed(original: Path, cell: Cell, folder: Path) -> Path:
    """Return the program to debug."""
    if (cell.abi, cell.version) not in ENCODED:
        return original
    folder.mkdir()
    return rewritten_copy(original, folder, cell.version)


def check(stop: Stop, cell: Cell, original: Path, answer: dict[str, Any]) -> None:
    """Check everything that is required of one stop."""
    assert "error" not in answer, answer["error"]
    always, off, fallback = answer["always"], answer["off"], answer["fallback"]
    wrong = first_wrong(stop, off["chain"])
    if wrong is not None:
        assert always["chain"][:wrong] == off["chain"][:wrong], "frames before the first that GDB itself gets wrong"
        return
    assert matches(stop.functions, [frame["name"] for frame in always["frames"]]), "functions"
    assert not always["bt"].startswith("error:"), always["bt"]
    threads = [names_in(part) for part in always["threads"].split("\n\n")]
    for pattern in stop.threads:
        assert any(matches(pattern, thread) for thread in threads), "functions of another thread"
    schemas.check_value("compare", answer["compare"])
    agreeing = [thread["agrees"] for thread in answer["compare"]["threads"]]
    assert agreeing, "no thread compared"
    if stop in WITHOUT_CFI:
        assert fallback["chain"] == always["chain"], "mode fallback"
    elif is_wrong(stop, cell.abi, cell.debugger):
        assert always["chain"][: len(off["chain"])] == off["chain"], "pc, SP (the CFA) and FP of each frame"
        assert not all(agreeing), "GDB's own unwinder is expected to be wrong here"
    else:
        assert known(always["chain"], cell) == known(off["chain"], cell), "pc, SP (the CFA) and FP of each frame"
        assert all(agreeing), answer["verdict"]
    if stop not in WITHOUT_CFI:
        assert fallback["bt"] == off["bt"], "mode fallback"
    check_used(cell, original, answer)


def known(chain: list[dict[str, Any]], cell: Cell) -> list[dict[str, Any]]:
    """Return the frames that both can know: before version 3, assemblers do not mark _start as the outermost one."""
    names = [frame["name"] for frame in chain]
    return chain[: names.index("_start") + 1] if cell.version < 3 and "_start" in names else chain


def check_used(cell: Cell, original: Path, answer: dict[str, Any]) -> None:
    """Check that SFrame of the cell's version was used wherever it covers a frame according to readelf."""
    assert f"{original.name}  " in answer["status"]
    (line,) = (line.split() for line in answer["status"].splitlines() if line.startswith(f"{original.name} "))
    assert line[2:4] == [str(cell.version), cell.abi]
    tools = toolchain(cell.abi, producer(cell))
    sframe, text = readelf.read_sframe(tools, original), text_address(tools, original)
    for thread in answer["compare"]["threads"]:
        ours = [frame for frame in thread["frames"] if frame["sframe_pc"] is not None]
        if cell.version < 3 and SAMPLES[original.name].freestanding:
            ours.pop()  # _start
        assert check_unwinders({"frames": ours}, answer["text"], sframe, text), "SFrame was not used"
