"""Signed return addresses: the trace is complete.  GDB's own stops at the first one whose mask it is not told."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.abis.cells import why_not
from tests.abis.debuggers import debugger, described, sysroot
from tests.abis.mask_registers import has_masks
from tests.abis.native import is_lost_in_library
from tests.expectations import STOPS, Stop, matches
from tests.gdb.driver import call
from tests.gdb.programs import built
from tests.pairing import paired
from tests.samples.catalogue import SIGNED_VARIANTS

CELLS = [
    (abi, version, name)
    for abi in ("aarch64", "aarch64_be")
    for version, name in ((1, "pypi"), (2, "pypi"), (3, "pypi"), (3, "system"))
]
ADDRESS_BITS = 48


@pytest.mark.parametrize("variant", SIGNED_VARIANTS)
@pytest.mark.parametrize(("abi", "version", "name"), CELLS)
def test_trace_is_complete(abi: str, version: int, name: str, variant: str) -> None:
    gdb = debugger(name, abi)
    stops = [stop for stop in STOPS if not why_not(stop.sample, abi, variant)]
    programs = [described(stop, built(stop.sample, abi, version, variant), abi, name) for stop in stops]
    answers = call(gdb, "tests.abis.inside.stops.collect", programs=programs, sysroot=sysroot(abi))
    wrong = 0
    for stop, answer in paired(stops, answers):
        assert "error" not in answer, (stop, answer)
        if is_lost_in_library(stop, answer["always"]["chain"]):
            continue
        check_always(stop, answer)
        wrong += check_verdict(stop, answer)
    if has_masks(abi):  # then GDB's own is wrong only behind a signal handler
        assert wrong <= sum(stop.sample == "signals" for stop in stops)
    else:
        assert wrong > len(stops) // 2


def check_always(stop: Stop, answer: dict[str, Any]) -> None:
    """Check that `bt` reaches the program's first function, and that no address has an authentication code."""
    always = answer["always"]
    assert matches(stop.frames, [frame["name"] for frame in always["chain"]]), (stop, always)
    shown = re.findall(r"^#\d+ +0x([0-9a-f]+) (?:\[PAC\] )?in ", always["bt"] + always["threads"], flags=re.MULTILINE)
    assert shown
    assert all(int(address, 16) >> ADDRESS_BITS == 0 for address in shown), always["bt"]


def check_verdict(stop: Stop, answer: dict[str, Any]) -> bool:
    """Check that `sframe compare` names the frame at which GDB's own unwinder is wrong, and the reason.

    Return whether it is wrong at all: one code in 128 is 0, and the signed address then is the plain address.
    """
    verdict, frames = answer["verdict"], answer["compare"]["threads"][0]["frames"]
    native, always = (answer[mode]["chain"] for mode in ("off", "always"))
    # SFrame's frames end with `main`, which GDB may not recognise by a signed address: then it goes on behind it.
    by_sframe = [frame["sframe_pc"] for frame in frames]
    depth = len(by_sframe) - by_sframe.count(None)
    assert by_sframe == [*(frame["pc"] for frame in always[:depth]), *[None] * by_sframe.count(None)]
    level = next((level for level, frame in enumerate(native) if frame["pc"] >> ADDRESS_BITS), len(native))
    if level >= len(frames):
        assert " frames agree" in verdict, (stop, verdict)
        return False
    pc, right = native[level]["pc"], always[level]["pc"]
    assert right == pc & (1 << ADDRESS_BITS) - 1
    assert verdict.startswith(f"first difference at frame {level}: pc {pc:#x} native, {right:#x} by SFrame"), verdict
    if depth > level + 1:
        assert verdict.endswith("; native ends there: previous frame identical to this frame (corrupt stack?)"), verdict
    elif len(frames) > depth:
        assert verdict.endswith("; SFrame ends there: main; GDB goes on with 'set backtrace past-main on'"), verdict
    return True


def test_mask_of_the_target() -> None:
    answer = call(debugger("pypi", "aarch64"), "tests.abis.inside.masks.collect")
    # 39-bit addresses, with bit 55 unchanged; without a mask register, 48 bits.
    assert answer["told"] == [0x12_3456_7890, 0x7F_7F12_3456_7890 & (1 << 39) - 1]
    assert answer["not told"] == [0x12_3456_7890, 0x7F12_3456_7890]
    assert answer["unreadable"] == answer["not told"]
    assert answer["zero"] == answer["not told"]
