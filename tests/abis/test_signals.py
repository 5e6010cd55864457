"""Signal frames: the frames after the trampoline are correct, and the interrupted function is looked up at its pc."""

from __future__ import annotations

from typing import Any

import pytest

from tests.abis.debuggers import debugger, described, sysroot
from tests.abis.native import first_wrong, is_wrong
from tests.expectations import STOPS
from tests.gdb.driver import call
from tests.gdb.programs import built
from tests.pairing import paired
from tests.samples import readelf
from tests.samples.build import toolchain
from tests.samples.catalogue import WITH_LIBC

WAYS = tuple(stop for stop in STOPS if stop.sample == "signals")
IN_LIBC = ("raise", "kill")
"""Ways in which the program is interrupted in the C library, which has no SFrame."""
BEHIND_ILLEGAL = {"s390x": 2}
"""Distance in bytes from the start of an illegal instruction to the pc that the kernel saves."""
CELLS = [
    (abi, version, name)
    for abi in WITH_LIBC
    for version in (1, 2, 3)
    for name in ("pypi", "system")
    if abi != "s390x" or version == 3  # the matrix has version 2
]


@pytest.mark.parametrize(("abi", "version", "name"), CELLS)
def test_frames_after_the_trampoline(abi: str, version: int, name: str) -> None:
    gdb = debugger(name, abi)
    path = built("signals", abi, version, "O2")
    tools = toolchain(abi, version)
    symbols, text = readelf.read_symbols(tools, path), readelf.read_sections(tools, path)[".text"].address
    programs = [described(stop, path, abi, name) for stop in WAYS]
    answers = call(gdb, "tests.abis.inside.stops.collect", programs=programs, sysroot=sysroot(abi))
    for stop, answer in paired(WAYS, answers):
        assert "error" not in answer, (stop, answer)
        wrong = first_wrong(stop, answer["off"]["chain"])
        if wrong is not None:
            assert answer["always"]["chain"][:wrong] == answer["off"]["chain"][:wrong], stop
            continue
        trampoline, outer = around_signal(answer)
        assert answer["always"]["chain"][trampoline]["kind"] == "signal"
        if not is_wrong(stop, abi, name):
            assert answer["always"]["chain"] == answer["off"]["chain"], stop
        (way,) = stop.arguments
        if way in IN_LIBC:
            continue
        interrupted, caller = outer[:2]
        function = symbols["fault_at_entry" if way == "entry" else "fault"]
        start = function.address - text + answer["text"]["start"]
        assert interrupted["name"] == ("fault_at_entry" if way == "entry" else "fault")
        if way == "entry":
            # Only the pc itself finds the function: none of its instructions has been executed.
            assert interrupted["pc"] == start + BEHIND_ILLEGAL.get(abi, 0)
        else:
            assert start < interrupted["pc"] < start + function.size
        assert interrupted["unwinder"] == caller["unwinder"] == "sframe"
        assert caller["name"] == "provoke"


def around_signal(answer: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    """Return the level of the trampoline, and the frames after it with their unwinders."""
    chain = answer["always"]["chain"]
    (level,) = [level for level, frame in enumerate(chain) if frame["kind"] == "signal"]
    shown = answer["compare"]["threads"][0]["frames"]
    outer = [{**frame, "unwinder": by["unwinder"]} for frame, by in zip(chain, shown)][level + 1 :]
    return level, outer
