"""Recordings in which no sample can be unwound: one line tells what to record, or where to look."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.address import ByteOrder
from sframe_unwind.cli import main
from tests.perf.writer import IP, STACK_USER, TID, TIME, Event, Writer

PC_AND_SP = {8: 0x401000, 7: 0x7F0000, 6: 0x7F0100}
"""Registers by the numbers of x86's ``asm/perf_regs.h``, including the frame pointer."""
REGISTERS = sum(1 << number for number in PC_AND_SP)
USED = Event(regs_user=REGISTERS)


def refused(path: Path, data: bytes, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the line that the command prints."""
    path.write_bytes(data)
    assert main(["perf", str(path)]) == 2
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert printed.out == ""
    return str(line).partition(f"{path.name}: ")[2]


def without_samples(byteorder: ByteOrder, machine: str) -> bytes:
    writer = Writer(byteorder, machine, [USED])
    writer.comm(1, "program")
    return writer.file()


def one_sample(event: Event, registers: dict[int, int], stack: bytes, abi: int = 2) -> bytes:
    writer = Writer("little", "x86_64", [event])
    writer.sample(1, 0x10, registers, stack, abi=abi)
    return writer.file()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (without_samples("little", "x86_64"), "there are no samples: record a longer run, or more of them"),
        (one_sample(Event(IP | TID | TIME), {}, b""), "no copies of the user stack: record them with perf record"),
        (one_sample(Event(IP | STACK_USER), {}, bytes(8)), "no copies of the user stack: record them with perf record"),
        (one_sample(USED, {}, b""), "of kernel threads: record a process that runs in user mode"),
        (one_sample(USED, PC_AND_SP, bytes(8), abi=1), "of 32-bit processes, for which SFrame has no ABI: record 64"),
        (one_sample(USED._replace(regs_user=1), PC_AND_SP, bytes(8)), "record them without --user-regs"),
        (one_sample(USED, PC_AND_SP, b""), "empty copies of the stack: record larger ones"),
    ],
    ids=["no-samples", "no-stacks", "no-registers", "kernel", "32-bit", "few-registers", "empty-stacks"],
)
def test_what_to_record(tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, said: str) -> None:
    line = refused(tmp_path / "perf.data", data, capsys)
    assert line.startswith("no sample can be unwound; ")
    assert said in line


def test_some_samples_are_of_32_bit_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = Writer("little", "x86_64", [USED])
    writer.sample(1, 0x10, PC_AND_SP, bytes(8), abi=1)
    writer.sample(1, 0x10, PC_AND_SP, bytes(8))
    path = tmp_path / "perf.data"
    path.write_bytes(writer.file())
    assert main(["perf", str(path)]) == 0
    assert capsys.readouterr().err.endswith("1 of 2 samples is not unwound: of 32-bit processes\n")


@pytest.mark.parametrize(("byteorder", "machine"), [("little", "riscv64"), ("big", "ppc64"), ("little", "s390x")])
def test_another_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], byteorder: ByteOrder, machine: str
) -> None:
    said = refused(tmp_path / "perf.data", without_samples(byteorder, machine), capsys)
    assert said == f"a recording of {machine}, {byteorder}-endian; expected one of aarch64_be, aarch64, amd64, s390x"


def test_where_to_look_for_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A recording of another machine has paths that exist here for this machine, and one that does not exist."""
    writer = Writer("little", "aarch64", [Event(regs_user=(1 << 33) - 1)])
    writer.mmap2(1, 0x400000, 0x1000, 0, "/bin/sh")
    writer.mmap2(1, 0x500000, 0x1000, 0, "/opt/server", build_id="0123456789abcdef")
    for pc in (0x400010, 0x500010, 0x500020):
        writer.sample(1, pc, {32: pc, 31: 0x7F0000, 29: 0x7F0100}, bytes(64))
    path = tmp_path / "perf.data"
    path.write_bytes(writer.file())
    assert main(["perf", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    (said,) = (line for line in lines if "--sysroot" in line)
    assert said == (
        "3 stacks end at a file that is not here: /opt/server (2), /bin/sh (1); name the folder that has them with"
        " --sysroot, or one that has them by build ID with --debug-dir"
    )
