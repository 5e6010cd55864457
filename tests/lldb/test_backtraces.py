"""The plugin's frames in LLDB's backtrace, compared with LLDB's own unwinder and the samples' expected stacks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import schemas
from tests.expectations import (
    ANY,
    SFRAME_ONLY_FREE,
    SFRAME_ONLY_STRIPPED,
    STOPS,
    STRIPPED_DEPTH,
    WITHOUT_CFI,
    Stop,
    matches,
    shows_frames_beyond_start,
)
from tests.gdb.compiling import mixed
from tests.lldb.debuggers import PROVIDING, find
from tests.lldb.driver import agrees, call
from tests.lldb.programs import is_built, is_signed, program
from tests.missing import fixed_addresses_needed
from tests.pairing import paired
from tests.samples.catalogue import ABIS, VARIANTS


class Cell(NamedTuple):
    """One session of LLDB, with all samples of one kind of build."""

    abi: str
    version: int
    variant: str


CELLS = (
    *(Cell("amd64", version, "O2") for version in (1, 2, 3)),
    *(Cell("amd64", 3, variant) for variant in ("O0", "Os", "fp")),
    *(Cell("aarch64", version, "O2") for version in (1, 2, 3)),
    *(Cell("aarch64", version, "pac") for version in (2, 3)),
    *(Cell("aarch64", 3, variant) for variant in ("O0", "pacb")),
    *(Cell("s390x", 3, variant) for variant in ("O2", "Os")),
)
IN_OLDER = (
    Cell("amd64", 1, "O0"),
    Cell("amd64", 3, "O2"),
    Cell("aarch64", 2, "O2"),
    Cell("aarch64", 3, "pac"),
    Cell("s390x", 3, "O2"),
)
"""In LLDB 22.1, each machine and version once, and signed addresses: other differences concern only the core."""
SESSIONS = tuple((lldb, cell) for lldb in PROVIDING for cell in (IN_OLDER if lldb == "22.1" else CELLS))
AGAINST_PLAIN = (Cell("amd64", 3, "O0"), Cell("amd64", 3, "O2"))
"""Cells that are also compared with LLDB without the plugin."""

DROPS_A_FRAME = "tail_inline"
"""LLDB itself loses the frame of a function with inlined functions that ended in a tail call."""
AT_ENTRY = "signals-entry"
"""A function is interrupted at its first instruction: LLDB names a plugin's frame by the byte before its pc."""
REALIGNS = "realign"
"""Before version 3, assemblers write no FDE for its two functions."""


def is_lost_by_lldb(stop: Stop, abi: str) -> bool:
    """Return whether LLDB's own unwinder stops early: at registers saved in registers, or the emulator's trampoline."""
    return (abi, stop.name) == ("s390x", "free_leaf-sample_in_leaf") or (abi != "amd64" and stop.sample == "signals")


@pytest.mark.parametrize(
    ("lldb", "cell"), [pytest.param(lldb, cell, id="-".join(map(str, (*cell, lldb)))) for lldb, cell in SESSIONS]
)
def test_samples(lldb: str, cell: Cell) -> None:
    stops = [stop for stop in (*STOPS, *WITHOUT_CFI) if is_built(stop, cell.abi, cell.variant)]
    programs = [program(stop, *cell) for stop in stops]
    answers = call(find(lldb), "backtraces", "collect", programs=programs)
    # The C library of Debian 13 signs its addresses, and LLDB is not told the mask.  One address in 128 looks the same.
    all_off = (frame for hits in answers for answer in hits for frame in selected(answer["off"]))
    signing = any(is_an_address_signed(frame) for frame in all_off)
    for stop, hits in paired(stops, answers):
        assert len(hits) == stop.hits
        for answer in hits:
            (check_without_cfi if stop in WITHOUT_CFI else check)(stop, cell, answer)
            check_used(stop, cell, answer)
            if not (is_signed(cell.variant) or stop in WITHOUT_CFI):  # LLDB does not know which addresses are signed
                (check_signing if signing and is_in_libc(answer) else check_agreeing)(stop, cell, answer)
    if is_signed(cell.variant):
        # One address in 128 looks the same when signed.
        agreeing = sum("first difference" not in answer["verdict"] for hits in answers for answer in hits)
        assert agreeing <= len(stops) // 4
    if cell in AGAINST_PLAIN:
        fixed_addresses_needed()
        plain = call(find(lldb), "backtraces", "plain", plugin=False, programs=programs)
        for stop, ours, theirs in paired(stops, answers, plain):
            # The places where other threads are stopped are random.
            assert stop.threads or [answer["off"] for answer in ours] == theirs, stop.name


def check_without_cfi(stop: Stop, _cell: Cell, answer: dict[str, Any]) -> None:
    """Check that the trace is complete in both modes that use SFrame's frames."""
    for mode in ("first", "always", "fallback"):
        frames = selected(answer[mode])
        assert matches(stop.functions, names(frames)), (stop.name, mode, names(frames))
        assert len(frames) >= (len(stop.functions) or STRIPPED_DEPTH), (stop.name, mode)


def check(stop: Stop, cell: Cell, answer: dict[str, Any]) -> None:
    """Check all requirements for a program at its place."""
    always = selected(answer["always"])
    assert places(selected(answer["first"])) == places(always), stop.name
    if stop.sample != DROPS_A_FRAME and not (stop.name == AT_ENTRY and cell.abi != "amd64"):
        assert matches(stop.functions, names(always)), (stop.name, names(always))


def check_signing(stop: Stop, cell: Cell, answer: dict[str, Any]) -> None:
    """Check that the plugin's stack goes on where the C library has signed an address."""
    assert steady(answer["first"], stop, cell) == steady(answer["always"], stop, cell), stop.name
    assert len(selected(answer["always"])) >= len(selected(answer["off"])), stop.name
    assert not any(is_an_address_signed(frame) for frame in selected(answer["always"])), stop.name


def check_agreeing(stop: Stop, cell: Cell, answer: dict[str, Any]) -> None:
    """Check that LLDB's own stacks are those of the plugin, at a place where LLDB can unwind."""
    always, off = selected(answer["always"]), selected(answer["off"])
    first, every, fallback, native = (
        steady(answer[mode], stop, cell) for mode in ("first", "always", "fallback", "off")
    )
    assert first == every, stop.name
    if is_lost_by_lldb(stop, cell.abi):
        assert len(off) < len(always), stop.name
        return
    assert native == fallback, stop.name
    schemas.check_value("compare", answer["compare"])
    assert len(answer["compare"]["threads"]) == len(answer["always"]["threads"])
    for pattern in stop.threads:
        assert any(matches(pattern, names(frames)) for frames in answer["always"]["threads"]), stop.name
    if shows_frames_beyond_start(stop, cell.version):
        assert always[: len(stop.functions)] == off[: len(stop.functions)], stop.name
    else:
        assert every == native, stop.name
        assert agrees(answer["verdict"]), (stop.name, answer["verdict"])
        assert all(thread["agrees"] for thread in answer["compare"]["threads"]), stop.name


def is_in_libc(answer: dict[str, Any]) -> bool:
    """Return whether the stack of the selected thread passes through the C library."""
    return any(name.startswith("__libc_start") for name in names(selected(answer["always"])))


def is_an_address_signed(frame: dict[str, Any]) -> bool:
    """Return whether the pc of a frame holds a signature, above the 48 bits of an address."""
    return bool(frame["pc"] >> 48)


def steady(shown: dict[str, Any], stop: Stop, cell: Cell) -> Any:
    """Return the parts that do not change while the program is stopped.

    In QEMU, a thread in a system call continues until the call returns.
    """
    return selected(shown) if stop.threads and cell.abi != "amd64" else shown


def check_used(stop: Stop, cell: Cell, answer: dict[str, Any]) -> None:
    """Check that the sample's own section, of the cell's version, gave its frames."""
    (row,) = (line.split() for line in answer["status"].splitlines() if line.startswith(f"{stop.sample} "))
    assert row[2:4] == [str(cell.version), cell.abi]
    thread = answer["compare"]["threads"][answer["always"]["selected"] - 1]
    by_sframe = sum(frame["unwinder"] == "sframe" for frame in thread["frames"])
    wanted = sum(name != ANY for name in stop.frames) or STRIPPED_DEPTH
    wanted -= shows_frames_beyond_start(stop, cell.version)
    wanted -= 2 * (stop.sample == REALIGNS and cell.abi == "amd64" and cell.version < 3)
    assert by_sframe >= wanted, (stop.name, answer["compare"])


def selected(shown: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the selected thread's frames."""
    frames: list[dict[str, Any]] = shown["threads"][shown["selected"] - 1]
    return frames


def places(frames: Sequence[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return the functions and pcs of a stack."""
    return [(frame["name"], frame["pc"]) for frame in frames]


def names(frames: Sequence[dict[str, Any]]) -> list[str]:
    """Return the functions of a stack."""
    return [frame["name"] for frame in frames]


@pytest.mark.parametrize("lldb", PROVIDING)
def test_signed_addresses_that_lldb_is_told_of(lldb: str) -> None:
    """With the mask, the trace also continues after the C library's frames."""
    stop = next(stop for stop in STOPS if stop.sample == "callback")
    settings = ["target.process.virtual-addressable-bits 48"]
    described = {**program(stop, "aarch64", 3, "pac"), "settings": settings}
    ((answer,),) = call(find(lldb), "backtraces", "collect", programs=[described])
    assert matches(stop.functions, names(selected(answer["always"])))
    assert answer["always"] == answer["off"]
    assert agrees(answer["verdict"])


@pytest.mark.parametrize("lldb", PROVIDING)
def test_signed_frames_that_only_cfi_describes(lldb: str, tmp_path: Path) -> None:
    """LLDB takes their callers' signed addresses for addresses; the CFI tells which ones are signed."""
    emulator = list(ABIS["aarch64"].emulator)
    described = {
        "executable": str(mixed(tmp_path, 3, "aarch64", VARIANTS["pac"], with_both=False)),
        "arguments": [],
        "emulator": emulator,
        "sysroot": emulator[emulator.index("-L") + 1],
        "place": "with_cfi",
        "hits": 4,
        "signals": [],
    }
    (hits,) = call(find(lldb), "backtraces", "collect", programs=[described])
    wanted = [*["with_cfi", "without_cfi"] * 3, "with_cfi", "main"]
    assert names(selected(hits[-1]["always"]))[: len(wanted)] == wanted
    assert names(selected(hits[-1]["off"]))[: len(wanted)] != wanted


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.parametrize(("abi", "variant"), [("amd64", "O2"), ("aarch64", "pac"), ("s390x", "O2")])
def test_traces_that_lldb_alone_does_not_get(lldb: str, abi: str, variant: str) -> None:
    """Without CFI, LLDB guesses from the instructions: often correctly, but not without a known function."""
    wanted = SFRAME_ONLY_FREE if abi == "s390x" else SFRAME_ONLY_STRIPPED
    ((answer,),) = call(find(lldb), "backtraces", "collect", programs=[program(wanted, abi, 3, variant)])
    ours, own = ([frame["pc"] for frame in selected(answer[mode])] for mode in ("always", "off"))
    assert own[: len(ours)] != ours[: len(wanted.functions) or STRIPPED_DEPTH]
    assert "first difference" in answer["verdict"]


@pytest.mark.parametrize("lldb", PROVIDING)
def test_big_endian_aarch64_is_beyond_lldb(lldb: str) -> None:
    walk = next(stop for stop in STOPS if stop.sample == "free_walk")
    said = call(find(lldb), "backtraces", "beyond", program=program(walk, "aarch64_be"))
    assert "wrong byte order" in said["status"]
    assert said["backtrace"] == [False, "", said["backtrace"][2]]
    assert "wrong byte order" in said["backtrace"][2]
