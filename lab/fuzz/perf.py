"""Fuzzes the command ``perf`` with damaged recordings: all its outputs, by all methods."""

from __future__ import annotations

import fcntl
import functools
import json
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

from lab.fuzz.commands import check_page, quick, run
from lab.fuzz.scratch import memory_folder
from sframe_unwind.address import ByteOrder
from tests.perf.emulated import Steps, stepped
from tests.perf.writer import ID, IDENTIFIER, USUAL, Event, Writer
from tests.samples.build import CACHE

SECONDS = 2.0
FOLDER = CACHE.parent / "fuzz-recordings-1"
"""Recordings of programs, made once; the number in the name grows when others are needed."""

_USER, _DEFERRED = (1 << 64) - 512, (1 << 64) - 640
"""PERF_CONTEXT_USER and PERF_CONTEXT_USER_DEFERRED."""
_SHARE_WITH_STACKS = 0.8
_CHANGES_OF_ONE = (1, 1, 1, 2, 2, 3, 6)
"""Numbers of changes to one recording; with more, hardly any is read up to its samples."""
_EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFF, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


class Input(NamedTuple):
    """A damaged recording."""

    name: str
    data: bytes
    number: int = 0
    """Decides the options of the command."""


@functools.cache
def seeds() -> tuple[Input, ...]:
    """Return undamaged recordings: with all records, and with stacks of existing programs."""
    return (*_with_all_records(), *_with_stacks())


@functools.cache
def _with_stacks() -> tuple[Input, ...]:
    """Return recordings of single steps, of both byte orders, whose damage reaches the unwinders."""
    with (CACHE.parent / f"{FOLDER.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process makes them, and the others wait
        if not FOLDER.is_dir():
            with tempfile.TemporaryDirectory(dir=CACHE.parent) as folder:
                made = Path(folder) / "made"
                made.mkdir()
                for abi in ("amd64", "aarch64", "s390x"):
                    for steps in (
                        Steps("free_walk", "with_alloca", every=5, most=3, copy=3072),
                        Steps("free_leaf", "free_main", every=9, most=4, copy=1024),
                    ):
                        (made / f"{steps.sample} {abi}").write_bytes(stepped(steps, abi).recording)
                made.rename(FOLDER)
    return tuple(Input(path.name, path.read_bytes()) for path in sorted(FOLDER.iterdir()))


@functools.cache
def _with_all_records() -> tuple[Input, ...]:
    """Return recordings of both byte orders, through a file and through a pipe, with one event and with two."""
    found = []
    machines: tuple[tuple[ByteOrder, str], ...] = (("little", "x86_64"), ("little", "aarch64"), ("big", "s390x"))
    for byteorder, machine in machines:
        for kind in (USUAL, USUAL | ID, USUAL | IDENTIFIER):
            writer = Writer(byteorder, machine, _events(kind))
            _fill(writer, kind != USUAL)
            name = f"{machine} {kind:#x}"
            found += [Input(f"{name} file", writer.file()), Input(f"{name} pipe", writer.pipe())]
    return tuple(found)


def _events(kind: int) -> list[Event]:
    """Return two events; samples name them only if they have ids."""
    names = ("cpu-clock:u", "page-faults") if kind != USUAL else ("", "")
    return [
        Event(kind, 0b1011, (70,), user_chain=True, name=names[0]),
        Event(kind, 0b11, (71,), name=names[1]),
    ]


def _fill(writer: Writer, with_second: bool) -> None:
    writer.comm(7, "program", is_exec=True)
    writer.mmap(7, 0x1000, 0x2000, 0x40, "/bin/old")
    writer.mmap2(7, 0x4000, 0x1000, 0, "/bin/program", build_id="0123456789abcdef", time=1)
    writer.fork(8, 7, 2)
    writer.sample(7, 0x4010, {0: 5, 1: 6, 3: 8}, bytes(range(64)), size=80, time=9, tid=8, callchain=(1, 2))
    writer.sample(7, 0x4010, {0: 5, 1: 6, 3: 8}, bytes(64), time=9, callchain=(_DEFERRED, 5))
    writer.deferred(7, 5, (_USER, 0x4010, 0x4020), time=10)
    if with_second:
        writer.sample(8, 0x4010, {0: 5, 1: 6}, bytes(16), time=10, event=1)
    writer.exit(8, 11)
    writer.build_id("/bin/old", "0123456789abcdef")


def made(number: int) -> Input:
    """Return the input of a number."""
    random = Random(number)
    with_stacks = _with_stacks()  # before memory is limited: QEMU needs more
    kinds = with_stacks if random.random() < _SHARE_WITH_STACKS else _with_all_records()
    name, undamaged, _ = random.choice(kinds)
    data = bytearray(undamaged)
    for _ in range(random.choice(_CHANGES_OF_ONE)):
        random.choice(_CHANGES)(random, data)
    return Input(name, bytes(data), number)


def _set_field(random: Random, data: bytearray) -> None:
    size = random.choice((2, 4, 8))
    end = len(data) if random.random() < 0.5 else 1200  # header, attributes, tasks and mappings
    at = random.randrange(0, max(min(end, len(data)) - size, 1), size)
    order = "big" if random.random() < 0.3 else "little"
    old = int.from_bytes(data[at : at + size], "little")
    value = random.choice((*_EXTREMES, old + 8, old - 8, old ^ 1 << random.randrange(8 * size), len(data)))
    data[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "big" if order == "big" else "little")


def _set_byte(random: Random, data: bytearray) -> None:
    if data:
        data[random.randrange(len(data))] = random.randrange(256)


def _cut(random: Random, data: bytearray) -> None:
    if random.random() < 0.2:
        del data[random.randrange(len(data) + 1) :]


def _remove(random: Random, data: bytearray) -> None:
    if random.random() < 0.8:
        return
    at = random.randrange(len(data) + 1)
    del data[at : at + random.choice((1, 4, 8, 16))]


_CHANGES: tuple[Callable[[Random, bytearray], None], ...] = (
    _set_field,
    _set_field,
    _set_field,
    _set_byte,
    _cut,
    _remove,
)


@functools.cache
def _folder() -> Path:
    """Return a folder of this process in memory."""
    return memory_folder()


def exercise(damaged: Input, seen: Counter[str]) -> None:
    """Run the command on a recording, and count the results.

    Each fourth input is converted, and written in each format; the formats share the work of unwinding.
    """
    folder = _folder()
    path, page, folded, speedscope = (folder / name for name in ("perf.data", "page.html", "folded", "speedscope"))
    path.write_bytes(damaged.data)
    options: list[object] = ["--json"] if damaged.number % 2 else []
    written = damaged.number // 2 % 4 == 0
    if written:
        options += ["--convert", "--html", page, "--folded", folded, "--speedscope", speedscope]
    with quick():
        status, printed = run(seen, "perf", path, *options)
    is_read = status == 0 or bool(printed)  # also a truncated recording
    seen["stacks"] += is_read
    if is_read and damaged.number % 2:
        answer = json.loads(printed)
        for counts in answer.get("events", [answer]):
            seen["samples unwound"] += counts["user_samples"]
            for verdict, count in counts["methods"]["sframe"].items():
                seen[f"SFrame: {verdict}"] += count
    if written and page.exists():
        check_page(page.read_text(encoding="utf-8"))
        json.loads(speedscope.read_text(encoding="utf-8"))
        folded.read_text(encoding="utf-8", errors="surrogateescape")
        for made in (page, folded, speedscope):
            made.unlink()
