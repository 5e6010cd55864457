"""A target that has the mask registers of signed return addresses, as QEMU 8.1 and later and real processors have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.abis import mask_registers
from tests.abis.cells import why_not
from tests.abis.debuggers import DEBUGGERS, debugger, described, sysroot
from tests.abis.mask_registers import MASK
from tests.abis.native import first_wrong, is_lost_in_library
from tests.expectations import STOPS, WITHOUT_CFI, Stop, matches
from tests.gdb.compiling import mixed
from tests.gdb.driver import call
from tests.gdb.programs import built
from tests.pairing import paired
from tests.samples.catalogue import VARIANTS

MIXED = Stop("mixed", (*("with_cfi", "without_cfi") * 3, "with_cfi", "main"), place="*with_cfi", hits=4)


@pytest.mark.parametrize("name", DEBUGGERS)
def test_frames_that_gdb_unwinds(name: str, tmp_path: Path) -> None:
    """GDB reads the mask in the caller of each frame whose return address is signed, also behind a claimed frame."""
    executable = mixed(tmp_path, 3, "aarch64", VARIANTS["pac"])
    program = described(MIXED, executable, "aarch64", name)
    (answer,) = collected("aarch64", name, [program], tmp_path)
    always = answer["always"]
    assert [frame["name"] for frame in always["chain"]][: len(MIXED.functions)] == list(MIXED.functions), answer
    assert "stopped" not in always["bt"]
    assert set(answer["masks"][: len(MIXED.functions)]) <= {MASK, MASK | 1 << 55}  # QEMU 10 tells bit 55 too


@pytest.mark.parametrize("variant", ["O2", "pac"])
@pytest.mark.parametrize("name", DEBUGGERS)
@pytest.mark.parametrize("abi", ["aarch64", "aarch64_be"])
def test_samples(abi: str, name: str, variant: str, tmp_path: Path) -> None:
    """Behind a signal handler, GDB takes another register for the mask, and its own stacks are wrong."""
    stops = [stop for stop in STOPS + WITHOUT_CFI if not why_not(stop.sample, abi, variant)]
    programs = [described(stop, built(stop.sample, abi, 3, variant), abi, name) for stop in stops]
    for stop, answer in paired(stops, collected(abi, name, programs, tmp_path)):
        assert "error" not in answer, (stop, answer)
        always, off = answer["always"], answer["off"]
        if stop not in WITHOUT_CFI:
            wrong = first_wrong(stop, off["chain"])
            assert always["chain"][:wrong] == off["chain"][:wrong], stop
        if not is_lost_in_library(stop, always["chain"]):
            assert matches(stop.frames, [frame["name"] for frame in always["chain"]]), (stop, always["bt"])


def collected(abi: str, name: str, programs: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Return the stacks of programs in an emulator that has mask registers."""
    for program in programs:
        program["emulator"] = mask_registers.command(program["emulator"], folder)
    answers: list[dict[str, Any]] = call(
        debugger(name, abi), "tests.abis.inside.stops.collect", programs=programs, sysroot=sysroot(abi)
    )
    return answers
