"""The user stacks that the kernel unwound: at once, and in records of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sframe_unwind.address import ByteOrder
from sframe_unwind.arch import amd64
from sframe_unwind.cli import main
from sframe_unwind.perf.judging import Verdict, judge
from sframe_unwind.perf.methods import by_kernel
from sframe_unwind.perf.recording import Recording
from sframe_unwind.perf.sample import Sample
from sframe_unwind.perf.sample_memory import SampleMemory
from sframe_unwind.perf.stack import Context
from tests.perf import programs
from tests.perf.unwinding import unwound
from tests.perf.writer import ID, USUAL, Event, Writer

KERNEL, USER, DEFERRED = ((1 << 64) - number for number in (128, 512, 640))
"""PERF_CONTEXT_KERNEL, _USER and _USER_DEFERRED of the kernel's ``include/uapi/linux/perf_event.h``."""


@pytest.mark.parametrize("way", ["file", "pipe"])
@pytest.mark.parametrize(("byteorder", "machine"), [("little", "aarch64"), ("big", "s390x")])
def test_chains_are_joined_by_thread_and_cookie(tmp_path: Path, byteorder: ByteOrder, machine: str, way: str) -> None:
    writer = Writer(byteorder, machine, [Event(USUAL | ID, 1, (70,), user_chain=True)])
    common = {"registers": {0: 5}, "stack": b"stack..."}
    for number, (pid, chain) in enumerate(
        [
            (7, (KERNEL, 0xF000, DEFERRED, 41)),
            (7, (KERNEL, 0xF100, DEFERRED, 41)),  # the thread is still in the kernel
            (8, (KERNEL, 0xF000, DEFERRED, 41)),
            (7, (DEFERRED, 42)),
            (7, (KERNEL, 0xF000, USER, 0x40, 0x50)),
            (7, (KERNEL, 0xF000)),
            (7, ()),
        ]
    ):
        writer.sample(pid, 0x10, time=10 + number, callchain=chain, **common)  # type: ignore[arg-type]
    writer.deferred(7, 41, (USER, 0x10, 0x20), time=30)
    writer.deferred(8, 41, (0x11, 0x21), time=31)
    path = tmp_path / "perf.data"
    path.write_bytes(getattr(writer, way)())
    recording = Recording(path)
    assert recording.has_user_chains
    found = [event.user_chain for event in recording if isinstance(event, Sample)]
    assert found == [(0x10, 0x20), (0x10, 0x20), (0x11, 0x21), None, (0x40, 0x50), None, None]


def test_the_kernels_stacks_are_compared_with_those_by_cfi(tmp_path: Path) -> None:
    path = programs.record(programs.sorting(), tmp_path)
    compared = 0
    for one in unwound(path):
        assert one.by_method["kernel"].reason == "the kernel recorded no user stack"
        reference = one.by_method["dwarf"].stack
        memory = SampleMemory(one.space, 0, 0, b"", "little")
        context = Context(amd64.ARCH, one.space, {amd64.ARCH.pc: reference.pcs[0]}, memory, False)
        pcs = reference.pcs
        if len(pcs) < 3:
            continue
        compared += 1
        chains = {Verdict.COMPLETE: pcs, Verdict.FAILED: pcs[:-1], Verdict.WRONG: (*pcs[:-1], pcs[-1] + 1)}
        for verdict, chain in chains.items():
            judged = judge("kernel", by_kernel(context._replace(user_chain=chain)), reference)
            assert judged.verdict is verdict
    assert compared > 5


def test_the_method_is_used_where_there_are_chains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    registers = {8: 0x1000, 7: 0x7FFF00001000, 6: 0}
    for has_chains in (False, True):
        writer = Writer("little", "x86_64", [Event(regs_user=0b111000000, user_chain=has_chains)])
        writer.sample(1, 0, registers, bytes(16), size=64, callchain=(DEFERRED, 3) if has_chains else (), time=1)
        if has_chains:
            writer.deferred(1, 3, (0x1000, 0x2000), time=2)
        path = tmp_path / "perf.data"
        path.write_bytes(writer.file())
        assert main(["perf", str(path), "--json"]) == 0
        methods = json.loads(capsys.readouterr().out)["methods"]
        assert ("kernel" in methods) == has_chains
