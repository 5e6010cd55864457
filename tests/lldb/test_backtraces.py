"""The plugin's frames in LLDB's backtrace, against LLDB's own unwinder and against what the samples are made for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.expectations import (
    ANY,
    SFRAME_ONLY_FREE,
    SFRAME_ONLY_STRIPPED,
    STOPS,
    STRIPPED_DEPTH,
    WITHOUT_CFI,
    Stop,
    matches,
)
from tests.lldb.debuggers import PROVIDING, find
from tests.lldb.driver import call
from tests.lldb.programs import S390X_WITH_LIBC, is_built, is_signed, program
from tests.samples.catalogue import SAMPLES

BUILDS = (
    *(("amd64", version, "O2") for version in (1, 2, 3)),
    *(("amd64", 3, variant) for variant in ("O0", "Os", "fp")),
    *(("aarch64", version, "O2") for version in (1, 2, 3)),
    *(("aarch64", version, "pac") for version in (2, 3)),
    ("aarch64", 3, "pacb"),
    ("aarch64", 3, "O0"),
    ("s390x", 3, "O2"),
    ("s390x", 3, "Os"),
)
"""ABI, version of SFrame, variant."""

DROPS_A_FRAME = "tail_inline"
"""LLDB itself loses the frame that inlined functions are in when that ended in a tail call."""


LOST_BY_LLDB = {("s390x", "free_leaf-sample_in_leaf")}
"""Registers saved in registers: LLDB's own unwinder gets no further than the innermost frame."""


def first_functions(stop: Stop, abi: str, signed: bool) -> tuple[str, ...]:
    """The functions of a stop as far as anybody in LLDB can find them."""
    beyond_lldb = abi != "amd64" and stop.sample == "signals"  # the emulator's signal trampoline
    unsigned_behind = signed and stop.sample == "callback"  # the C library's frames, by LLDB, behind signed ones
    if beyond_lldb or unsigned_behind:
        return stop.functions[: stop.functions.index(ANY)]
    return stop.functions


def says_too_much(stop: Stop, version: int) -> bool:
    """Whether the assembler described the return address of the program's first function, which has none, as saved."""
    return SAMPLES[stop.sample].freestanding and version < 3


def selected(shown: dict[str, Any]) -> list[dict[str, Any]]:
    """The selected thread's frames."""
    frames: list[dict[str, Any]] = shown["threads"][shown["selected"] - 1]
    return frames


def places(frames: Sequence[dict[str, Any]]) -> list[tuple[str, int]]:
    """The functions and pcs of a stack."""
    return [(frame["name"], frame["pc"]) for frame in frames]


def names(frames: Sequence[dict[str, Any]]) -> list[str]:
    """The functions of a stack."""
    return [frame["name"] for frame in frames]


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.parametrize(("abi", "version", "variant"), BUILDS)
def test_samples(lldb: str, abi: str, version: int, variant: str) -> None:
    stops = [stop for stop in (*STOPS, *WITHOUT_CFI) if is_built(stop, abi, variant)]
    programs = [program(stop, abi, version, variant) for stop in stops]
    answers = call(find(lldb), "backtraces", "collect", programs=programs)
    for stop, hits in zip(stops, answers):
        for answer in hits:
            if stop in WITHOUT_CFI:
                check_without_cfi(stop, answer)
            else:
                check(stop, answer, abi, version, is_signed(variant))


def check_without_cfi(stop: Stop, answer: dict[str, Any]) -> None:
    """The trace is complete in both modes that take SFrame's frames."""
    for mode in ("first", "always", "fallback"):
        frames = selected(answer[mode])
        assert matches(stop.functions, names(frames)), (stop.name, mode, names(frames))
        assert len(frames) >= (len(stop.functions) or STRIPPED_DEPTH), (stop.name, mode)


def check(stop: Stop, answer: dict[str, Any], abi: str, version: int, signed: bool) -> None:
    """All that must hold of a program at its place."""
    always = selected(answer["always"])
    assert places(selected(answer["first"])) == places(always), stop.name
    if stop.sample != DROPS_A_FRAME:
        wanted = first_functions(stop, abi, signed)
        assert matches(wanted, names(always)), (stop.name, names(always))
    if signed:
        # LLDB does not know which addresses are signed; its own backtrace is right in the innermost frames only.
        assert "first difference" in answer["verdict"], (stop.name, answer["verdict"])
        assert stop.sample == DROPS_A_FRAME or len(always) >= len(first_functions(stop, abi, signed)), stop.name
        return
    assert answer["first"] == answer["always"], stop.name
    assert answer["off"] == answer["fallback"], stop.name
    assert len(answer["compare"]["threads"]) == len(answer["always"]["threads"])
    for pattern in stop.threads:
        assert any(matches(pattern, names(frames)) for frames in answer["always"]["threads"]), stop.name
    if (abi, stop.name) in LOST_BY_LLDB:
        assert len(selected(answer["off"])) < len(always), stop.name
    elif says_too_much(stop, version):
        shown = len(stop.functions)
        assert always[:shown] == selected(answer["off"])[:shown], stop.name
    else:
        assert answer["always"] == answer["off"], stop.name
        assert answer["verdict"].endswith(" agree"), (stop.name, answer["verdict"])
        assert all(thread["agrees"] for thread in answer["compare"]["threads"]), stop.name


@pytest.mark.parametrize("lldb", PROVIDING)
def test_signed_addresses_that_lldb_is_told_of(lldb: str) -> None:
    """Then the trace goes on behind the C library's frames too."""
    stop = next(stop for stop in STOPS if stop.sample == "callback")
    settings = ["target.process.virtual-addressable-bits 48"]
    described = {**program(stop, "aarch64", 3, "pac"), "settings": settings}
    ((answer,),) = call(find(lldb), "backtraces", "collect", programs=[described])
    assert matches(stop.functions, names(selected(answer["always"])))
    assert answer["always"] == answer["off"]
    assert answer["verdict"].endswith(" agree")


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.parametrize(("abi", "variant"), [("amd64", "O2"), ("aarch64", "pac"), ("s390x", "O2")])
def test_traces_that_lldb_alone_does_not_get(lldb: str, abi: str, variant: str) -> None:
    """LLDB guesses from the instructions where there is no CFI: often well, but not where it knows no function."""
    wanted = SFRAME_ONLY_FREE if abi == "s390x" else SFRAME_ONLY_STRIPPED
    ((answer,),) = call(find(lldb), "backtraces", "collect", programs=[program(wanted, abi, 3, variant)])
    ours, own = ([frame["pc"] for frame in selected(answer[mode])] for mode in ("always", "off"))
    assert own[: len(ours)] != ours[: len(wanted.functions) or STRIPPED_DEPTH]
    assert "first difference" in answer["verdict"]


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.parametrize("variant", ["O0", "O2"])
def test_off_is_lldb_without_the_plugin(lldb: str, variant: str) -> None:
    stops = [stop for stop in (*STOPS, *WITHOUT_CFI) if is_built(stop, "amd64", variant) and not stop.threads]
    programs = [program(stop, "amd64", 3, variant) for stop in stops]
    with_plugin = call(find(lldb), "backtraces", "collect", programs=programs)
    without = call(find(lldb), "backtraces", "plain", plugin=False, programs=programs)
    for stop, ours, theirs in zip(stops, with_plugin, without):
        assert [answer["off"] for answer in ours] == theirs, stop.name


def test_dynamic_s390x_programs_are_beyond_lldb() -> None:
    assert not is_built(STOPS[0], "s390x", "O2"), S390X_WITH_LIBC


@pytest.mark.parametrize("lldb", PROVIDING)
def test_big_endian_aarch64_is_beyond_lldb(lldb: str) -> None:
    walk = next(stop for stop in STOPS if stop.sample == "free_walk")
    said = call(find(lldb), "backtraces", "beyond", program=program(walk, "aarch64_be"))
    assert "wrong byte order" in said["status"]
    assert said["backtrace"] == [False, "", said["backtrace"][2]]
    assert "wrong byte order" in said["backtrace"][2]
