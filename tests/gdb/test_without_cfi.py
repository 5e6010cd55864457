"""Functions without DWARF unwind data: complete stacks in mode `always` and `fallback`, incomplete ones in `off`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.expectations import STOPS, STRIPPED_DEPTH, WITHOUT_CFI, Stop, matches
from tests.gdb.compiling import mixed, tools_for
from tests.gdb.driver import Debugger, call
from tests.gdb.programs import built, program, variants
from tests.gdb.stacks import text_address
from tests.pairing import paired
from tests.samples import readelf
from tests.samples.build import toolchain

ABI = "amd64"
GUESSED = ("O0", "fp")
"""Variants with frame pointers, from which GDB guesses correctly by the first instructions of functions."""


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("stop", WITHOUT_CFI, ids=lambda stop: stop.name)
def test_complete_by_sframe_alone(debugger: Debugger, stop: Stop, version: int) -> None:
    builds = variants(stop.sample, ABI)
    described = [program(stop, built(stop.sample, ABI, version, *which), ABI) for which in builds]
    for (variant, _), stops in paired(builds, call(debugger, "backtraces.collect", programs=described)):
        always, off = stops[0]["always"]["frames"], stops[0]["off"]["frames"]
        assert matches(stop.functions, [frame["name"] for frame in always])
        unwound = [frame["unwinder"] for frame in stops[0]["compare"]["threads"][0]["frames"]]
        depth = len(stop.functions) or STRIPPED_DEPTH
        assert unwound[: depth - 1] == ["sframe"] * (depth - 1)
        if variant not in GUESSED:
            assert [frame["pc"] for frame in off][:depth] != [frame["pc"] for frame in always][:depth]
            assert not stop.functions or not matches(stop.functions, [frame["name"] for frame in off])


def _check_fallback(answer: dict[str, Any], tools: Path, path: Path) -> int:
    """Check that exactly the executable's frames without CFI in readelf were claimed; return their number."""
    bias = answer["text"] - text_address(tools, path)
    ranges = readelf.read_dwarf_ranges(tools, path)
    sframe = readelf.read_sframe(tools, path)
    expected = set()
    for level, pc in enumerate(answer["pcs"]):
        address = pc - bias - (level > 0)
        described = any(f.start <= address < f.start + f.size and f.rows for f in sframe.functions)
        if described and not any(address in covered for covered in ranges):
            expected.add(pc)
    assert set(answer["claimed"]) == expected
    return sum(pc in expected for pc in answer["pcs"])


@pytest.mark.parametrize("version", [1, 2, 3])
def test_fallback_in_a_mixed_program(debugger: Debugger, version: int, tmp_path: Path) -> None:
    tools = tools_for(version)
    path = mixed(tmp_path, version)
    names = ("with_cfi", "without_cfi")
    stop = Stop("mixed", (*(names[depth % 2] for depth in range(7)), "main"), place="with_cfi if depth == 0")
    described = [program(stop, path, ABI)]
    (answer,) = call(debugger, "claims.collect", programs=described, mode="fallback")
    assert _check_fallback(answer, tools, path) == 3
    (answer,) = call(debugger, "claims.collect", programs=described, mode="always")
    assert set(answer["claimed"]) == set(answer["pcs"][: len(stop.functions)])
    ((shown,),) = call(debugger, "backtraces.collect", programs=described)
    assert matches(stop.functions, [frame["name"] for frame in shown["always"]["frames"]])
    assert not matches(stop.functions, [frame["name"] for frame in shown["off"]["frames"]])


@pytest.mark.parametrize("version", [1, 2, 3])
def test_fallback_in_programs_with_and_without(debugger: Debugger, version: int) -> None:
    chosen = [*WITHOUT_CFI, *(stop for stop in STOPS if stop.name in ("callback", "dynamic", "free_walk"))]
    paths = [built(stop.sample, ABI, version, *variants(stop.sample, ABI)[1]) for stop in chosen]
    tools = toolchain(ABI, version)
    described = [program(stop, path, ABI) for stop, path in zip(chosen, paths)]
    for stop, path, answer in paired(
        chosen, paths, call(debugger, "claims.collect", programs=described, mode="fallback")
    ):
        claimed = _check_fallback(answer, tools, path)
        assert bool(claimed) == (stop in WITHOUT_CFI)
    for answer in call(debugger, "claims.collect", programs=described[:1], mode="off"):
        assert answer["claimed"] == []
