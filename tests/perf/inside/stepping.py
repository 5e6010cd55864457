"""Steps a program, and records at each stop the data of a perf sample and the stack of GDB's own unwinder."""

from __future__ import annotations

from typing import Any

import gdb

from tests.abis.inside.chains import MADE_UP, reachable, without_limits
from tests.gdb.inside.program import execute, run_to, stopped

_PAGE = 4096


def step(program: dict[str, Any], registers: dict[str, str], copy: int, every: int, most: int) -> dict[str, Any]:
    """Return the sections of all files in memory, and a sample every few instructions until the program ends.

    :param program: in the form of `tests.abis.debuggers.described`, with `sysroot`; the first sample is at its place.
    :param registers: the registers to record, by number, and that of the stack pointer as "sp".
    :param copy: maximum number of bytes of stack.
    :param every: number of instructions between two samples.
    :param most: maximum number of samples.
    """
    execute("set sframe mode off")
    execute("set backtrace limit 300")
    without_limits()
    if program["sysroot"]:
        execute(f"set sysroot {program['sysroot']}")
    with stopped(program):
        run_to(program["place"])
        execute("delete")
        samples: list[dict[str, Any]] = []
        while len(samples) < most and gdb.selected_inferior().pid:
            samples.append(_sample(registers, copy))
            execute(f"stepi {every}")
        return {"sections": _sections(), "samples": samples}


def _sample(registers: dict[str, str], copy: int) -> dict[str, Any]:
    frame = gdb.newest_frame()
    values = {what: _value(frame, name) for what, name in registers.items()}
    return {
        "stack": _stack(values.pop("sp"), copy).hex(),
        "registers": values,
        "pcs": [frame.pc() for frame in reachable() if frame.type() not in MADE_UP],
    }


def _value(frame: gdb.Frame, name: str) -> int:
    value = frame.read_register(name)
    if value.type.code == gdb.TYPE_CODE_FLT:
        return int.from_bytes(value.bytes, "big" if "big" in execute("show endian") else "little")
    return int(value) & (1 << 64) - 1


def _stack(sp: int, size: int) -> bytes:
    """Return the stack from SP on, as far as it is readable."""
    memory = gdb.selected_inferior()
    while True:
        try:
            return bytes(memory.read_memory(sp, size))
        except gdb.MemoryError:
            end = (sp + size - 1) & -_PAGE
            if end <= sp:
                raise
            size = end - sp


def _sections() -> list[tuple[int, int, str, str]]:
    """Return start and end address, name and file of each section; the executable's have no file."""
    found = []
    for line in execute("info files").splitlines():
        fields = line.split()
        if len(fields) in (5, 7) and fields[1] == "-" and fields[3] == "is":
            found.append((int(fields[0], 16), int(fields[2], 16), fields[4], fields[6] if len(fields) == 7 else ""))
    return found
