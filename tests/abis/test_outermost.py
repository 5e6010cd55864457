"""A function whose return address SFrame marks as undefined, without CFI: the stack ends there, in every debugger."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.abis.debuggers import DEBUGGERS, debugger, described, sysroot
from tests.expectations import STOPS, matches
from tests.gdb.driver import call
from tests.gdb.programs import built
from tests.samples.build import toolchain
from tests.samples.catalogue import ABIS

LEAF = next(stop for stop in STOPS if stop.sample == "free_leaf")


@pytest.mark.parametrize("name", DEBUGGERS)
@pytest.mark.parametrize("abi", ABIS)
def test_the_stack_ends_there(abi: str, name: str, tmp_path: Path) -> None:
    gdb = debugger(name, abi)
    copy = tmp_path / LEAF.sample
    objcopy = toolchain(abi, 3) / "objcopy"
    subprocess.run([objcopy, "-R", ".eh_frame", "-R", ".eh_frame_hdr", built(LEAF.sample, abi, 3), copy], check=True)
    programs = [described(LEAF, copy, abi, name)]
    (answer,) = call(gdb, "tests.abis.inside.stops.collect", programs=programs, sysroot=sysroot(abi))
    assert "error" not in answer, answer
    always = answer["always"]
    assert matches(LEAF.frames, [frame["name"] for frame in always["chain"]])
    after = always["bt"].splitlines()[len(LEAF.functions) :]
    why = "frame did not save the PC" if gdb.version >= (14,) else "previous frame inner to this frame (corrupt stack?)"
    assert after in ([], [f"Backtrace stopped: {why}"])
