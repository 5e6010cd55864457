"""Several events, chosen samples, single samples, and the names of generated code."""

from __future__ import annotations

import json
import struct
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sframe_unwind.cli import main
from sframe_unwind.perf.jitdump import read_jitdump
from tests.hanging import HANG
from tests.perf import programs
from tests.perf.writer import ID, USUAL, Event, Writer

PC, SP, FP = 8, 7, 6
REGISTERS = 1 << PC | 1 << SP | 1 << FP
"""The kernel's numbers of x86's registers (``asm/perf_regs.h``)."""
CODE, STACK = 0x7F0000001000, 0x7FFF00001000


def two_events() -> Writer:
    """Write a recording with samples of two events, of two processes with three threads."""
    kind = USUAL | ID
    events = [Event(kind, REGISTERS, (70,), name="cpu-clock:u"), Event(kind, REGISTERS, (71,), name="page-faults")]
    writer = Writer("little", "x86_64", events)
    for pid, tid, name in ((7, 7, "server"), (7, 8, "worker"), (9, 9, "client")):
        writer.comm(pid, name, tid=tid)
    for number in range(12):
        pid, tid = ((7, 7), (7, 8), (9, 9))[number % 3]
        at = {PC: CODE + number, SP: STACK, FP: 0}
        writer.sample(pid, CODE, at, bytes(16), size=64, time=100 + number, tid=tid, event=number % 4 == 3)
    return writer


@pytest.fixture(params=["file", "pipe"])
def recording(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "perf.data"
    path.write_bytes(getattr(two_events(), request.param)())
    return path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert main(["perf", *map(str, arguments)]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return str(shown.out)


def test_events_are_not_added_up(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, recording, "--json"))["events"]
    assert [(one["event"], one["samples"]) for one in found] == [("cpu-clock:u", 9), ("page-faults", 3)]
    text = printed(capsys, recording)
    assert [line for line in text.splitlines() if line.startswith("Event ")] == [
        "Event cpu-clock:u",
        "Event page-faults",
    ]
    for name in ("cpu-clock", "cpu-clock:u"):
        one = json.loads(printed(capsys, recording, "--json", "--event", name))
        assert (one["event"], one["samples"]) == ("cpu-clock:u", 9)
    both = "samples of cpu-clock:u and page-faults are never added up; --event NAME chooses one event"
    assert main(["perf", str(recording), "--folded", str(tmp_path / "folded")]) == 2
    assert capsys.readouterr().err == f"sframe-unwind: --folded: {both}\n"
    assert main(["perf", str(recording), "--event", "cycles"]) == 2
    expected = "--event: there is no event cycles; the events are cpu-clock:u, page-faults"
    assert capsys.readouterr().err == f"sframe-unwind: {expected}\n"


@pytest.mark.parametrize(
    ("arguments", "threads"),
    [
        (("--pid", "7"), {7: 4, 8: 4}),
        (("--tid", "8"), {8: 4}),
        (("--tid", "8", "--tid", "9"), {8: 4, 9: 4}),
        (("--comm", "worker", "--comm", "client"), {8: 4, 9: 4}),
        (("--pid", "7", "--event", "page-faults"), {7: 1, 8: 1}),
    ],
)
def test_chosen_samples(
    recording: Path, arguments: tuple[str, ...], threads: dict[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(capsys, recording, "--stacks", "--json", *arguments).splitlines()
    samples = [json.loads(line) for line in lines]
    assert Counter(sample["tid"] for sample in samples) == threads
    assert [sample["time"] for sample in samples] == sorted(sample["time"] for sample in samples)


def test_single_samples(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, recording, "--stacks", "--tid", "8", "--event", "page-faults", "--method", "fp,dwarf")
    assert text.splitlines() == [
        "worker 7/8 0.000000107 page-faults:",
        "  fp: complete",
        f"    #0   {CODE + 7:#018x}  ?? (?)",
        "  dwarf: failed (no code is mapped here)",
        f"    #0   {CODE + 7:#018x}  ?? (?)",
    ]


def test_events_of_perf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = programs.record_command([str(programs.sorting())], tmp_path, "-e", "page-faults:u")
    command = ["perf", "script", "-F", "event", "-G", "-i", str(path)]
    by_perf = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANG).stdout
    expected = Counter(line.strip().rstrip(":") for line in by_perf.splitlines() if line.strip())
    assert len(expected) == 2
    assert main(["perf", str(path), "--json", "--method", "dwarf"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["events"]
    assert {one["event"]: one["samples"] for one in found} == expected


def test_names_of_generated_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two processes have different code at the same address; one writes a jitdump file."""
    writer = Writer("little", "x86_64", [Event(regs_user=REGISTERS)])
    dump = f"{tmp_path}/jit-9.dump"
    for pid in (7, 9):
        writer.comm(pid, f"process{pid}")
        writer.mmap2(pid, CODE, 0x1000, 0, "//anon")
    writer.mmap2(9, 0x7F1000000000, 0x1000, 0, dump)
    for number, (pid, offset) in enumerate([(7, 0x10), (7, 0x18), (7, 0x50), (9, 0x10), (9, 0x210), (9, 0x310)]):
        at = {PC: CODE + offset, SP: STACK, FP: 0}
        writer.sample(pid, CODE, at, bytes(16), size=64, time=10 + number)
    root = tmp_path / "root"
    (root / "tmp").mkdir(parents=True)
    (root / "tmp" / "perf-7.map").write_text(f"{CODE + 0x10:x} 10 JS:leaf a.js:1\nbroken\n", encoding="ascii")
    (root / dump.lstrip("/")).parent.mkdir(parents=True)
    (root / dump.lstrip("/")).write_bytes(jitdump())
    path = tmp_path / "perf.data"
    path.write_bytes(writer.file())
    folded = tmp_path / "folded"
    arguments = ["perf", str(path), "--sysroot", str(root), "--method", "fp", "--folded", str(folded)]
    assert main(arguments) == 0
    assert folded.read_text(encoding="utf-8").splitlines() == [
        "process7;JS:leaf a.js:1 2",
        "process7;[anon] 1",
        "process9;[anon] 1",
        "process9;made 1",
        "process9;moved 1",
    ]
    capsys.readouterr()


def jitdump() -> bytes:
    """Return a file with two functions, of which the second one was moved."""
    header = struct.pack("<4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, 9, 0, 0)
    made = record(0, struct.pack("<IIQQQQ", 9, 9, 0, CODE + 0x200, 0x20, 1) + b"made\0" + bytes(0x20))
    other = record(0, struct.pack("<IIQQQQ", 9, 9, 0, CODE + 0x10, 0x20, 2) + b"moved\0" + bytes(0x20))
    moved = record(1, struct.pack("<IIQQQQQ", 9, 9, 0, CODE + 0x10, CODE + 0x300, 0x20, 2))
    return header + made + record(2, bytes(24)) + other + moved


def record(kind: int, body: bytes) -> bytes:
    return struct.pack("<IIQ", kind, 16 + len(body), 5) + body


def test_a_cut_jitdump_file_has_its_first_names() -> None:
    whole = jitdump()
    assert [name for _, name in read_jitdump(whole).values()] == ["made", "moved"]
    for end in range(len(whole)):
        assert set(read_jitdump(whole[:end])) <= {CODE + 0x200, CODE + 0x10, CODE + 0x300}
    assert read_jitdump(b"DTiJ" + bytes(100)) == {}
