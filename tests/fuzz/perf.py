"""Damaged recordings of perf: they are read whole, and may raise documented errors only."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from sframe_unwind.errors import SFrameError
from sframe_unwind.perf.recording import Recording
from tests.perf.writer import ID, IDENTIFIER, USUAL, Event, Writer

_MOST = 6
_EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFF, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


class Input(NamedTuple):
    """A damaged recording."""

    name: str
    data: bytes


@functools.cache
def seeds() -> tuple[Input, ...]:
    """Undamaged recordings: both byte orders, through a file and through a pipe, with one event and with two."""
    found = []
    for byteorder, machine in (("little", "x86_64"), ("little", "aarch64"), ("big", "s390x")):
        for kind in (USUAL, USUAL | ID, USUAL | IDENTIFIER):
            writer = Writer(byteorder, machine, [Event(kind, 0b1011, (70,)), Event(kind, 0b11, (71,))])
            _fill(writer, kind != USUAL)
            name = f"{machine} {kind:#x}"
            found += [Input(f"{name} file", writer.file()), Input(f"{name} pipe", writer.pipe())]
    return tuple(found)


def _fill(writer: Writer, with_second: bool) -> None:
    writer.comm(7, "program", is_exec=True)
    writer.mmap(7, 0x1000, 0x2000, 0x40, "/bin/old")
    writer.mmap2(7, 0x4000, 0x1000, 0, "/bin/program", "0123456789abcdef", time=1)
    writer.fork(8, 7, 2)
    writer.sample(7, 0x4010, {0: 5, 1: 6, 3: 8}, bytes(range(64)), size=80, time=9, tid=8, callchain=(1, 2))
    if with_second:
        writer.sample(8, 0x4010, {0: 5, 1: 6}, bytes(16), time=10, event=1)
    writer.exit(8, 11)
    writer.build_id("/bin/old", "0123456789abcdef")


def made(number: int) -> Input:
    """The input of a number."""
    random = Random(number)
    name, undamaged = random.choice(seeds())
    data = bytearray(undamaged)
    for _ in range(random.randint(1, _MOST)):
        random.choice(_CHANGES)(random, data)
    return Input(name, bytes(data))


def _set_field(random: Random, data: bytearray) -> None:
    size = random.choice((2, 4, 8))
    at = random.randrange(0, max(len(data) - size, 1), size)
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


def exercise(damaged: Input, seen: Counter[str]) -> None:
    """Read a recording, and count what came of it."""
    descriptor = os.memfd_create("perf.data")
    try:
        os.write(descriptor, damaged.data)
        events = list(Recording(f"/proc/self/fd/{descriptor}"))
        seen["answered"] += 1
        seen["records"] += len(events)
    except SFrameError:
        seen["rejected"] += 1
    finally:
        os.close(descriptor)
