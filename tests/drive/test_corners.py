"""A few of the sessions of `python -m lab.drive --corners`, and the tools that they use."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lab.drive import building, corners, cutting, makings, places, session
from lab.drive.debuggers import DEBUGGERS, WITHOUT
from lab.drive.dimensions import (
    COMPACT,
    DEBUG_FRAME,
    DISTANT,
    GONE,
    LISTENER,
    NO_CFI,
    NO_SFRAME,
    ONE_BOTH,
    ONE_CFI,
    ONE_SFRAME,
    PATCHELF,
    PROMPT,
    REMOTE,
    ROUND,
    STRIP,
    Corner,
    all_pairs,
    corner,
    corner_of,
    pairs_of,
    possible,
    round_of_corners,
)
from lab.drive.makings import made
from lab.real_programs import ProgramError
from tests.hanging import HANG
from tests.missing import toolchain_needed
from tests.samples.build import toolchain


@pytest.mark.parametrize("is_gdb", [True, False])
def test_all_pairs_that_can_meet_do_meet_in_a_round(is_gdb: bool) -> None:
    wanted = all_pairs(is_gdb, True)
    for number in range(2):
        chosen = round_of_corners(number, is_gdb, True)
        assert all(map(possible, chosen))
        assert set().union(*map(pairs_of, chosen)) == wanted
        assert len(chosen) == ROUND
    assert corner_of(ROUND, is_gdb, True) == round_of_corners(1, is_gdb, True)[0]
    assert corner_of(ROUND, is_gdb, True, {"mode": "off"}) == {**corner_of(ROUND, is_gdb, True), "mode": "off"}
    seeds = [corner_of(seed, is_gdb, True, {"version": NO_SFRAME}) for seed in range(20)]
    assert {chosen["version"] for chosen in seeds} == {NO_SFRAME}
    assert all(map(possible, seeds))
    assert len({tuple(chosen.items()) for chosen in seeds}) == 20
    with pytest.raises(ValueError, match="no such corner"):
        corner_of(0, is_gdb, True, {"version": NO_SFRAME, "tables": ONE_CFI})


def described(file: Path, option: str) -> str:
    """Return the output of the newest readelf for a file; readelf must not complain."""
    readelf = toolchain("amd64", 3) / "readelf"
    command = [str(readelf), "--wide", option, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=True)
    assert not done.stderr
    return done.stdout


def fdes(file: Path) -> set[str]:
    """Return the ranges of the FDEs that readelf finds in `.eh_frame`, in its notation."""
    lines = described(file, "--debug-dump=frames").splitlines()
    return {line.partition("pc=")[2] for line in lines if " FDE " in line}


def rows(file: Path) -> set[str]:
    """Return the functions that readelf finds in `.sframe`."""
    return {line.partition("pc =")[2] for line in described(file, "--sframe").splitlines() if "func idx" in line}


def loaded(file: Path) -> list[str]:
    """Return the program headers with the addresses."""
    return [line for line in described(file, "--segments").splitlines() if line.split()[:1] == ["LOAD"]]


def _starts(file: Path) -> list[str]:
    """Return the start of each function that SFrame covers, in readelf's notation of an FDE."""
    return [f"pc={start:016x}.." for start in cutting.covered(file)]


@pytest.mark.parametrize("tables", [ONE_CFI, ONE_SFRAME, ONE_BOTH, NO_CFI, GONE])
def test_what_is_cut_away_is_gone_and_nothing_else_moved(tables: str) -> None:
    with toolchain_needed():
        making = made(corner(tables=tables), 0)
        whole = made(corner(), 0).file
    assert loaded(making.file) == loaded(whole)
    assert described(making.file, "--syms") == described(whole, "--syms")
    without_cfi = fdes(whole) - fdes(making.file) if tables != GONE else set()
    without_sframe = rows(whole) - rows(making.file)
    wanted = {ONE_CFI: (1, 0), ONE_SFRAME: (0, 1), ONE_BOTH: (1, 1)}
    if tables in wanted:
        assert (len(without_cfi), len(without_sframe)) == wanted[tables]
    else:
        assert not without_sframe
        assert len(rows(whole)) > 10
    if tables == NO_CFI:
        assert len(without_cfi) > 10  # a PLT has one FDE, but two functions in SFrame
        assert not any(start in described(making.file, "--debug-dump=frames") for start in _starts(whole))
    if tables == GONE:
        assert ".eh_frame" not in described(making.file, "--sections")
    shown = [
        subprocess.run([str(file)], capture_output=True, timeout=HANG, check=True) for file in (making.file, whole)
    ]
    assert shown[0].stdout == shown[1].stdout


def test_a_compacted_section_has_the_same_functions_in_fewer_entries() -> None:
    with toolchain_needed():
        plain, small = (made(corner(tables=NO_CFI, version=version), 0) for version in ("3", COMPACT))
    assert plain.whole == small.whole
    entries, kept = (cutting.covered(making.file) for making in (plain, small))
    assert len(kept) < len(entries)
    ends = [start + size for start, size in kept.items()]
    for start, size in entries.items():
        assert any(first <= start < end for first, end in zip(kept, ends))
        assert any(first < start + size <= end for first, end in zip(kept, ends))
    assert loaded(plain.file) == loaded(small.file)
    assert described(plain.file, "--syms") == described(small.file, "--syms")


def test_strip_leaves_the_cfi_of_a_program_that_has_no_other() -> None:
    with toolchain_needed():
        making = made(corner(tables=DEBUG_FRAME, rewritten=STRIP), 0)
    assert ".debug_frame" in described(making.file, "--sections")
    assert ".debug_info" not in described(making.file, "--sections")


_HEADLESS: Corner = {"tables": NO_CFI, "symbols": "headless", "mode": "auto"}
SAMPLE = (
    ("gdb18", corner(plt="ibt", version="1", program="stubs")),
    ("gdb18", corner(plt="now", version="2", program="stubs", tables=NO_CFI, client="script")),
    ("gdb18", corner(tables=DEBUG_FRAME, client="dap", level="O2")),
    ("gdb18", corner(tables=ONE_CFI, program="methods", client="mi", linker="lld")),
    ("gdb18", corner(tables=ONE_BOTH, place="remote", position="fixed")),
    ("gdb18", corner(tables=NO_CFI, version=COMPACT, symbols="stripped")),
    ("gdb13", corner(tables=NO_CFI, place="gcore", version="2", client="terminal")),
    ("gdb13", corner(tables=DEBUG_FRAME, symbols="stripped", level="O2", mode="fallback")),
    ("gdb13", corner(tables=ONE_SFRAME, program="objects", linker="mold", client="mi")),
    ("lldb23", corner(client="batch", tables=ONE_CFI, version=COMPACT, symbols="stripped")),
    ("lldb23", corner(client="async-script", tables=ONE_SFRAME, program="objects")),
    ("lldb23", corner(client="two", position="fixed", version="1", plt="ibt")),
    ("lldb23", corner(client="batch", place="kernel", symbols="stripped", linker="lld")),
    ("lldb22", corner(client="script", tables=DEBUG_FRAME, program="methods")),
    ("lldb23", corner(client="script", tables=DEBUG_FRAME, symbols="stripped", place="minidump", mode="fallback")),
    ("lldb22", corner(client="batch", place="minidump", position="fixed")),
    ("gdb18", corner(depth="3000", tables=ONE_CFI, linker="lld", program="methods", mode="auto")),
    ("gdb18", corner(place=DISTANT, others=LISTENER, mode="auto")),
    ("gdb13", corner(place=REMOTE, version=NO_SFRAME, mode="auto")),
    ("gdb18", corner(others=PROMPT, rewritten=PATCHELF, version=NO_SFRAME, mode="auto")),
    ("gdb13", corner(others=LISTENER, rewritten=STRIP, depth="300", mode="auto")),
    ("lldb23", corner(depth="3000", tables=NO_CFI, others=LISTENER, mode="auto")),
    ("lldb23", corner(version=NO_SFRAME, tables=DEBUG_FRAME, symbols="stripped", mode="auto")),
    ("lldb22", corner(program="jumps", level="O2", plt="ibt-now", position="fixed", depth="10", **_HEADLESS)),
)
SEEDS = range(3)
"""Seeds to try for a session that always goes the same way without the plugin."""


@pytest.mark.parametrize(("debugger", "chosen"), SAMPLE)
@pytest.mark.usefixtures("fixed_addresses")
def test_a_session_at_a_corner(debugger: str, chosen: Corner) -> None:
    for seed in SEEDS:
        with toolchain_needed():
            outcome = corners.run(seed, DEBUGGERS[debugger], chosen)
        assert not outcome.failures, (seed, outcome)
        assert not outcome.alone, (seed, outcome)
        if not outcome.dropped:
            assert outcome.commands > 3
            return
    raise AssertionError(f"no session is the same each time: {outcome.dropped}")


@pytest.mark.parametrize(("debugger", "counts"), [("gdb18", True), ("lldb23", False)])
def test_a_difference_counts_the_first_time_in_gdb(
    debugger: str, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = ["move 3 (next): frames: [1] (main 1), now (main 2)"]

    def replay(*rest: Any) -> tuple[str, float]:
        return once.pop() if once and rest[2] != WITHOUT else "", 0.1

    monkeypatch.setattr(corners, "replay", replay)
    outcome = corners.run(0, DEBUGGERS[debugger], corner(), length=2)
    assert bool(outcome.failures) == counts
    assert bool(outcome.unsteady) != counts


@pytest.mark.parametrize(("varying", "is_dropped"), [(2, True), (3, True), (4, False)])
def test_a_difference_before_a_session_varies_counts(
    varying: int, is_dropped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replay(*rest: Any) -> tuple[str, float]:
        number = varying if rest[2] == WITHOUT else 3
        return f"move {number} (next): frames: [1] (main 1), now (main 2)", 0.1

    monkeypatch.setattr(corners, "replay", replay)
    outcome = corners.run(0, DEBUGGERS["lldb23"], corner(), length=2)
    assert bool(outcome.dropped) is is_dropped
    assert bool(outcome.failures) is not is_dropped


@pytest.mark.parametrize(
    ("key", "other", "said"),
    [
        ("frames", lambda frames: frames[:-1], "frames: "),
        ("frames", lambda frames: [[*frames[0][:4], "0x10"], *frames[1:]], "frames: "),
        ("registers", lambda registers: [[name, "0x77"] for name, _ in registers], "registers: rbx = "),
        ("registers", lambda registers: [[name, "<not saved>"] for name, _ in registers], ""),
    ],
)
def test_where_cfi_is_missing_a_value_may_be_missing_and_not_wrong(key: str, other: Any, said: str) -> None:
    chosen = corner(tables=ONE_CFI)
    debugger, making = DEBUGGERS["gdb18"], made(chosen, 0)
    scene = corners.CornerScene(debugger, chosen, making, making.whole, 0)
    moves = session.record(0, scene, 2)
    last = moves[0]
    judge = corners.Judge(
        corner=chosen, mode="always", lacking=True, terminal=False, is_gdb=True, unknown=making.unknown
    )
    changed = {**last.state, key: other(last.state[key])}
    found = judge(last, "", changed)
    assert "".join(found).startswith(said)
    assert judge.first(last, "", changed) == ("".join(found), "")
    assert bool(said) == any(found)
    assert judge(dataclasses.replace(last), "", last.state) == ("", "")


@pytest.mark.parametrize(
    ("debugger", "chosen", "counts"),
    [
        ("gdb18", corner(place=REMOTE, version=NO_SFRAME, mode="auto"), "packets"),
        ("lldb23", corner(version=NO_SFRAME, mode="auto"), "packets"),
        ("gdb18", corner(client="dap", version=NO_SFRAME, mode="auto"), "events"),
    ],
)
def test_without_sframe_one_packet_or_event_more_is_a_difference(debugger: str, chosen: Corner, counts: str) -> None:
    making = made(chosen, 0, DEBUGGERS[debugger].is_gdb)
    scene = corners.CornerScene(DEBUGGERS[debugger], chosen, making, making.file, 0)
    move, *_ = session.record(0, scene, 1)
    name = max(move.state[counts], key=move.state[counts].__getitem__)
    more = {**move.state, counts: {**move.state[counts], name: move.state[counts][name] + 1}}
    for version, said in ((NO_SFRAME, f"{counts}: "), ("3", "")):
        judge = corners.Judge(
            corner={**chosen, "version": version},
            mode="auto",
            lacking=False,
            terminal=False,
            is_gdb=DEBUGGERS[debugger].is_gdb,
            unknown=making.unknown,
        )
        place, contents = judge(move, move.text, more)
        assert not place
        assert contents.startswith(said)
        assert bool(contents) == bool(said)


@pytest.mark.parametrize(("level", "said"), [(0, "registers: rbx = 0x1, now 0x2"), (1, "")])
def test_frames_outside_code_without_any_data_have_no_registers_to_compare(level: int, said: str) -> None:
    """Their callers are a guess of the debugger, with and without the plugin."""
    judge = corners.Judge(
        corner=corner(tables=ONE_BOTH), mode="auto", lacking=True, terminal=False, is_gdb=True, unknown=((0x10, 0x20),)
    )
    frames = [["inner", 0x10, "", 1, "0x7000"], ["outer", 0x40, "", 2, "0x7010"]]
    states = [{"frames": frames, "registers": [["rbx", value]]} for value in ("0x1", "0x2")]
    move = session.Move(lines=("up",), full=True, level=level, seconds=0.1, text="", broken="", state=states[0])
    assert judge(move, "", states[1]) == ("", said)


@pytest.mark.parametrize(
    ("failure", "place"),
    [
        ("move 3 (up; next): frames: [2] (f 0x1), now (g 0x2)", (3, 2)),
        ("move 3 (next): frames: 4 entries, now 3", (3, 3)),
        ("move 3 (next): locals: [2] (n int 1), now (n int 2)", (3, 0)),
        ("the end: ended by SIGSEGV", (1_000, 0)),
    ],
)
def test_a_debugger_that_is_wrong_further_out_is_no_excuse(failure: str, place: tuple[int, int]) -> None:
    assert corners._place(failure) == place


def test_code_without_any_data_ends_what_is_compared() -> None:
    chosen = corner(tables=GONE, position="fixed")
    making = made(chosen, 0)
    covered = cutting.covered(making.file)
    assert all(not first <= start < end for start in covered for first, end in making.unknown)
    main = next(function for function in cutting.functions(making.file) if function.name == "main")
    start = next(function for function in cutting.functions(making.file) if function.name == "_start")
    judge = corners.Judge(
        corner=chosen, mode="always", lacking=True, terminal=False, is_gdb=True, unknown=making.unknown
    )
    assert not judge._is_unknown(main.start + 1)
    assert judge._is_unknown(start.start + 1)


@pytest.mark.parametrize(
    ("debugger", "place"), [("gdb13", "gcore"), ("gdb18", "kernel"), ("lldb23", "gcore"), ("lldb23", "save-stack")]
)
@pytest.mark.usefixtures("fixed_addresses")
def test_a_core_file_may_be_in_a_folder_with_a_space(
    debugger: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(makings, "CACHE", tmp_path / "a folder")
    chosen = corner(place=place)
    with toolchain_needed():
        making = made(chosen, 0, DEBUGGERS[debugger].is_gdb)
    scene = corners.CornerScene(DEBUGGERS[debugger], chosen, making, making.file, 0)
    first, *_ = session.record(0, scene, 1)
    assert "main" in [str(frame[0]).partition("(")[0] for frame in first.state["frames"]]


def test_a_session_whose_core_takes_too_long_to_make_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The campaign continues: a missing core file is one of the errors for which a session is dropped."""
    monkeypatch.setattr(places, "SECONDS", 0.1)
    with pytest.raises(ProgramError, match="gdb18 takes more than"):
        places._make(DEBUGGERS["gdb18"], ["sleep", "60"], tmp_path / "core")


def test_a_session_whose_program_takes_too_long_to_build_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "SECONDS", 0.1)
    with pytest.raises(ProgramError, match=r"sleep in .* takes more than 0 s"):
        building.run_tool(["sleep", "60"], tmp_path)
