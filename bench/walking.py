"""Measures the core's walk over a deep stack, from a snapshot of its memory."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.debuggers import installed_gdb
from bench.program import CACHE, section_bytes
from bench.report import SCALES, BenchError, Row, Target, Unavailable, medians
from bench.sample import DEPTH, FRAMES, recursion
from bench.timing import alternate
from sframe_unwind import elf
from sframe_unwind.arch.amd64 import ARCH
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.memory import ReadWord
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Module, Modules
from sframe_unwind.unwind.walk import End, Registers, Walk

PART = "walk"
AT_MOST = Target(5)
"""Target in microseconds per frame."""
ROUNDS = 15


class StackCopy(NamedTuple):
    """Registers and stack of a stopped thread."""

    registers: Registers
    address: int
    stack: bytes


def rows() -> Iterator[Row]:
    """Measure without caches: each round opens the section and looks each rule up again."""
    for variant in ("O2", "fp"):
        try:
            yield _each_frame(variant)
        except Unavailable as error:
            yield Row(part=PART, what=f"recursion {variant}", values=(), unit="", target=AT_MOST, detail=str(error))


def _each_frame(variant: str) -> Row:
    path = recursion(variant, pie=False)
    snapshot = take(path)
    read_word = reader(snapshot)
    section = elf.load(path)[0]
    starts, sizes = section.tables[0].extents()
    code = min(starts), max(start + size for start, size in zip(starts, sizes))
    data = section_bytes(path)

    def walk() -> int:
        module = Module("recursion", [code], lambda: Section(data, section.address))
        steps = Walk(ARCH, Modules(ARCH, [module]), snapshot.registers, read_word)
        frames = sum(1 for _ in steps)
        if frames < FRAMES or steps.end is not End.NO_DATA:
            raise BenchError(f"the walk ended after {frames} frames: {steps.end} {steps.detail}")
        return frames

    frames = walk()
    times = alternate(ROUNDS, {"walk": walk})
    each = [seconds / frames * SCALES["µs"] for seconds in times["walk"]]
    return Row(
        part=PART,
        what=f"recursion {variant}: {frames:,} frames, each",
        values=each,
        unit="µs",
        target=AT_MOST,
        detail=medians("ms", **times),
    )


def reader(snapshot: StackCopy) -> ReadWord:
    """Return the function that reads the memory of the snapshot."""
    address, stack = snapshot.address, snapshot.stack
    unpack = struct.Struct("<Q").unpack_from
    last = len(stack) - 8

    def read_word(at: int) -> int:
        offset = at - address
        if not 0 <= offset <= last:
            raise MemoryReadError(at, 8)
        word: int = unpack(stack, offset)[0]
        return word

    return read_word


def take(path: Path) -> StackCopy:
    """Return the snapshot of a program (fixed address) in its innermost function; take it if necessary.

    :raises Unavailable: there is no GDB to take it with.
    """
    folder = CACHE / f"snapshot-{path.parent.name}-{DEPTH}"
    state = folder / "registers.json"
    if not state.exists():
        folder.mkdir(parents=True, exist_ok=True)
        taken = installed_gdb().call(path, "snapshot", depth=DEPTH, stack=str(folder / "stack"))
        state.write_text(json.dumps(taken))
    saved = json.loads(state.read_text())
    return StackCopy(Registers(*saved), saved[1], (folder / "stack").read_bytes())
