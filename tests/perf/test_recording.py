"""Recordings that the tests write, in both byte orders, and recordings of perf, compared with its own output."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sframe_unwind.address import ByteOrder
from sframe_unwind.cli import main
from sframe_unwind.errors import FormatError
from sframe_unwind.perf.mappings import Mapping
from sframe_unwind.perf.recording import Recording
from sframe_unwind.perf.sample import Sample
from sframe_unwind.perf.tasks import Comm, Exit, Fork
from tests.hanging import HANG
from tests.perf import programs
from tests.perf.writer import ID, IDENTIFIER, USUAL, Event, Writer

BUILD_ID = "0123456789abcdef0123456789abcdef01234567"


def written(tmp_path: Path, data: bytes) -> Recording:
    path = tmp_path / "perf.data"
    path.write_bytes(data)
    return Recording(path)


@pytest.mark.parametrize("way", ["file", "pipe"])
@pytest.mark.parametrize(("byteorder", "machine"), [("little", "aarch64"), ("big", "s390x")])
def test_every_record_is_read(tmp_path: Path, byteorder: ByteOrder, machine: str, way: str) -> None:
    writer = Writer(byteorder, machine, [Event(regs_user=0b101)])
    writer.comm(7, "program", is_exec=True)
    writer.mmap(7, 0x1000, 0x2000, 0x40, "/bin/old")
    writer.mmap2(7, 0x4000, 0x1000, 0, "/bin/program", build_id=BUILD_ID, time=1)
    writer.mmap2(7, 0x6000, 0x1000, 0, "/bin/data", time=2, prot=1)
    writer.sample(7, 0x4010, {0: 5, 2: 6}, b"stack...", size=16, time=9, tid=8, callchain=(1, 2))
    writer.sample(7, 0x4020, {}, b"", time=8)
    writer.fork(9, 7, 10)
    writer.exit(7, 11)
    writer.build_id("/bin/old", BUILD_ID[:16])
    recording = written(tmp_path, getattr(writer, way)())
    assert (recording.byteorder, recording.machine) == (byteorder, machine)
    assert recording.build_ids == {"/bin/old": BUILD_ID[:16]}
    assert list(recording) == [
        Comm(7, 7, "program", True),
        Mapping(pid=7, start=0x1000, end=0x3000, offset=0x40, path="/bin/old", build_id="", executable=True),
        Mapping(pid=7, start=0x4000, end=0x5000, offset=0, path="/bin/program", build_id=BUILD_ID, executable=True),
        Mapping(pid=7, start=0x6000, end=0x7000, offset=0, path="/bin/data", build_id="", executable=False),
        Sample(
            pid=7, tid=7, time=8, ip=0x4020, callchain=(), abi=0, registers={}, stack=b"", stack_is_cut=False
        ),  # the earlier one
        Sample(
            pid=7,
            tid=8,
            time=9,
            ip=0x4010,
            callchain=(1, 2),
            abi=2,
            registers={0: 5, 2: 6},
            stack=b"stack...",
            stack_is_cut=False,
        ),
        Fork(9, 7, 9, 7),
        Exit(7, 7),
    ]


@pytest.mark.parametrize("kind", [USUAL | ID, USUAL | IDENTIFIER])
def test_a_sample_names_its_event_by_id(tmp_path: Path, kind: int) -> None:
    writer = Writer("little", "x86_64", [Event(kind, 0b1, (70,)), Event(kind, 0b110, (71, 72))])
    writer.sample(1, 0x10, {0: 4}, b"12345678", time=1)
    writer.sample(1, 0x10, {1: 5, 2: 6}, b"12345678", time=2, event=1)
    found = [event.registers for event in written(tmp_path, writer.file()) if isinstance(event, Sample)]
    assert found == [{0: 4}, {1: 5, 2: 6}]


def test_a_full_copy_of_the_stack_is_cut(tmp_path: Path) -> None:
    writer = Writer("little", "x86_64", [Event(regs_user=1)])
    writer.sample(1, 0x10, {0: 4}, b"12345678", size=8)
    writer.sample(1, 0x10, {0: 4}, b"12345678", size=16)
    samples = [event for event in written(tmp_path, writer.file()) if isinstance(event, Sample)]
    assert [(sample.stack, sample.stack_is_cut) for sample in samples] == [(b"12345678", True), (b"12345678", False)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"PERFILE", "not a recording of perf: the file begins with too few bytes"),
        (b"\x7fELF" + bytes(100), "not a recording of perf: the file begins with 7f454c4600000000"),
        (b"PERFILE2" + bytes(96), "size of the header is 0, expected 16 or 104 (perf.data offset 0x8)"),
        (
            b"PERFILE2" + (16).to_bytes(8, "little") + bytes(8),
            "a record of 0 bytes, expected at least 8 (perf.data offset 0x10)",
        ),
    ],
)
def test_another_file_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        written(tmp_path, data)
    assert str(caught.value) == message


@pytest.mark.parametrize("way", ["file", "pipe"])
def test_a_truncated_recording_is_read_as_far_as_it_goes(tmp_path: Path, way: str) -> None:
    """Cut at every byte."""
    writer = Writer("little", "x86_64", [Event(regs_user=1)])
    for time in range(1, 4):
        writer.sample(1, 0x10, {0: 4}, b"12345678", size=8, time=time)
    data = getattr(writer, way)()
    whole = [event for event in written(tmp_path, data) if isinstance(event, Sample)]
    assert len(whole) == 3
    starts = [at for at in range(len(data)) if data[at : at + 8] == (9).to_bytes(4, "little") + b"\2\0\x50\0"]
    size = 0x50
    for end in range(starts[0], starts[-1] + size):
        recording = written(tmp_path, data[:end])
        found = [event for event in recording if isinstance(event, Sample)]
        assert found == whole[: sum(start + size <= end for start in starts)]
        if way == "file":
            assert recording.truncated == f"truncated after {end - starts[0]:,} of 240 bytes of records"
        else:
            # A head of 8 bytes is needed to notice a record.
            inside = [start for start in starts if start + 8 <= end < start + size]
            assert recording.truncated == "".join(f"ends within the record at offset {at:#x}" for at in inside)


def test_a_truncated_recording_of_perf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, half = programs.record(programs.sorting(), tmp_path), tmp_path / "half"
    data = path.read_bytes()
    half.write_bytes(data[: len(data) // 2])
    command = ["perf", "script", "--ns", "-F", "tid,time", "-G", "-i", str(half)]
    by_perf = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG).stdout.splitlines()
    samples = [event for event in Recording(half) if isinstance(event, Sample)]
    whole = [event for event in Recording(path) if isinstance(event, Sample)]
    assert len(by_perf) <= len(samples) < len(whole)  # perf gives up before the end
    assert all(sample in whole for sample in samples)
    assert main(["perf", str(half), "--method", "dwarf"]) == 2
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert re.fullmatch(
        rf"sframe-unwind: {half}: truncated after \S+ of \S+ bytes of records: \d+ samples until there", line
    )
    assert printed.out.startswith("DWARF gives complete stacks for 100.0% of ")


def test_a_recording_from_standard_input(tmp_path: Path) -> None:
    path = programs.record(programs.sorting(), tmp_path, "-o", "-")
    command = [sys.executable, "-m", "sframe_unwind", "perf"]
    by_path = subprocess.run([*command, str(path)], capture_output=True, text=True, check=True, timeout=HANG).stdout
    with path.open("rb") as stream:
        piped = subprocess.Popen(["cat"], stdin=stream, stdout=subprocess.PIPE)
        by_pipe = subprocess.run(
            [*command, "-"], stdin=piped.stdout, capture_output=True, text=True, check=True, timeout=HANG
        ).stdout
        piped.wait(timeout=HANG)
    assert by_pipe == by_path


def perf_samples(path: Path) -> list[tuple[int, int]]:
    """Return thread and time in nanoseconds of each sample, as perf prints them."""
    command = ["perf", "script", "--ns", "-F", "tid,time", "-G", "-i", str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANG).stdout
    pairs = (line.split() for line in printed.splitlines() if line.strip())
    return sorted((int(tid), int(time.rstrip(":").replace(".", ""))) for tid, time in pairs)


@pytest.mark.parametrize(
    "options",
    [(), ("-e", "task-clock"), ("-z", "-m", "16"), ("-o", "-"), ("-e", "task-clock", "-o", "-"), ("--threads",)],
    ids=["file", "two-events", "compressed", "pipe", "two-events-pipe", "folder"],
)
def test_perf_reads_the_same_samples(tmp_path: Path, options: tuple[str, ...]) -> None:
    # perf 6.1 cannot read its own compressed records of more than 64 KiB at once, so its buffer is kept small.
    dump = 1024 if "-z" in options else 16384
    path = programs.record_command([str(programs.sorting())], tmp_path, *options, dump=dump)
    samples = [event for event in Recording(path) if isinstance(event, Sample)]
    assert len(samples) > 5
    assert sorted((sample.tid, sample.time) for sample in samples) == perf_samples(path)
