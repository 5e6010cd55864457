"""Measures the cost of 10,000 procedures that a process registered with libunwind, in GDB and in the core."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from bench.debuggers import all_gdbs
from bench.report import SCALES, BenchError, Row, Target, medians
from bench.timing import alternate
from sframe_unwind.arch.amd64 import ARCH
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.runtime_code.source import RunTimeCode
from sframe_unwind.unwind.modules import Found, Modules
from tests.runtime_code.programs import LIBUNWIND, build_generated
from tools.binutils import ToolchainUnavailable

PART = "run-time"
PROCEDURES = 10_000
FIRST, AFTER = Target(50), Target(1)
"""Limits in milliseconds, for the first backtrace and for those at later stops."""
ROUNDS = 15
_TITLES = {"first": "first backtrace", "after": "at later stops"}
_BASE, _CODE, _SIZE = 0x10000, 0x7F00_0000_0000, 64


def rows() -> Iterator[Row]:
    """Measure the time that the list adds to the first backtrace, and at each later stop with an unchanged list."""
    yield from _core()
    try:
        program = build_generated("amd64", LIBUNWIND)
    except ToolchainUnavailable as error:
        yield Row(part=PART, what="in GDB", values=(), unit="", target=FIRST, detail=str(error))
        return
    for gdb in all_gdbs():
        times = gdb.call(program, "run_time_code", procedures=PROCEDURES, rounds=ROUNDS)
        for what, target in (("first", FIRST), ("after", AFTER)):
            added = [(more - less) * SCALES["ms"] for more, less in zip(times[f"{what} many"], times[f"{what} few"])]
            made_of = medians("ms", **{f"{few}_procedures": times[f"{what} {few}"] for few in ("many", "few")})
            yield Row(
                part=PART,
                what=f"{gdb.name}: {PROCEDURES:,} procedures, {_TITLES[what]}",
                values=added,
                unit="ms",
                target=target,
                detail=made_of,
            )


def _core() -> Iterator[Row]:
    memory = _memory()

    def read(address: int, size: int) -> bytes:
        piece = memory[address - _BASE : address - _BASE + size]
        if address < _BASE or len(piece) != size:
            raise MemoryReadError(address, size)
        return piece

    def find(name: str) -> list[int]:
        return [_BASE] if name == "_U_dyn_info_list" else []

    def process() -> Modules:
        return Modules(ARCH, [], run_time=RunTimeCode(ARCH, read, find, print))

    def first() -> None:
        if not isinstance(process().results[_CODE + _SIZE * PROCEDURES // 2], Found):
            raise BenchError("a registered procedure was not found")

    known = process()
    times = alternate(ROUNDS, {"first": first, "after": known.look_again})
    for what, target in (("first", FIRST), ("after", AFTER)):
        values = [seconds * SCALES["ms"] for seconds in times[what]]
        yield Row(PART, f"core: {PROCEDURES:,} procedures, {_TITLES[what]}", values, "ms", target)


def _memory() -> bytes:
    """Return a list of procedures that share one list of regions."""
    entry = struct.Struct("<QQQQ8xi4xQQ16xQ")
    first = _BASE + 16
    regions = first + PROCEDURES * entry.size
    pieces = [struct.pack("<IIQ", 0, PROCEDURES, first)]
    for number in range(PROCEDURES):
        at, start = first + number * entry.size, _CODE + number * _SIZE
        following = at + entry.size if number < PROCEDURES - 1 else 0
        pieces.append(entry.pack(following, at - entry.size if number else 0, start, start + _SIZE, 0, 0, 0, regions))
    pieces.append(struct.pack("<QiI", 0, _SIZE, 0))
    return b"".join(pieces)
