"""Steps generated functions, and records GDB's values at each instruction with those at the function's entry.

The CFA of a function, its return address and the callee-saved registers of its caller do not change while it runs, so
their values at the first instruction are a reference that needs no unwind data.
"""

from __future__ import annotations

from typing import Any

import gdb

from tests.gdb.inside.program import execute, resume, stopped

_MASK = (1 << 64) - 1
_REGISTERS = {
    # pc; SP; where the function's address is at the entry of sample_call; where the return address is (None: in
    # memory at SP); distance of the caller's SP from SP at the entry; callee-saved registers
    "amd64": ("rip", "rsp", "rdi", None, 8, ("rbx", "rbp", "r12", "r13", "r14", "r15")),
    "aarch64": ("pc", "sp", "x0", "x30", 0, tuple(f"x{number}" for number in range(19, 30))),
    "s390x": ("pswa", "r15", "r2", "r14", 0, (*(f"r{number}" for number in range(6, 14)), "f8", "f15")),
}


def steps(program: dict[str, Any], abi: str) -> dict[str, Any]:
    """Step through each call of a generated function, and unwind the stack at each instruction.

    Returns for each call the right caller (``expected``), and for each instruction and mode (``stops``) the caller that
    is shown, and the number of frames inside it; ``None``: the caller is not shown.
    """
    pc, sp, function, link, popped, saved = _REGISTERS[abi]
    calls = []
    with stopped(program):
        execute("break sample_call")
        execute("break sample_stop")
        resume()
        while gdb.selected_inferior().pid:
            if gdb.newest_frame().name() == "sample_call":
                _go_to(_read(gdb.newest_frame(), function))
                frame = gdb.newest_frame()
                top = _read(frame, sp) or 0
                end = _read(frame, link) or 0 if link else _word(top)
                expected = {"pc": end, "sp": top + popped, "saved": {name: _read(frame, name) for name in saved}}
                calls.append({"expected": expected, "stops": _until(end, top + popped, pc, sp, saved)})
            execute("continue")
    return {"calls": calls}


def _until(end: int, end_sp: int, pc: str, sp: str, saved: tuple[str, ...]) -> list[dict[str, Any]]:
    """Step to the return address of a generated function."""
    stops: list[dict[str, Any]] = []
    while True:
        frame = gdb.newest_frame()
        at = _read(frame, pc)
        if at == end and _read(frame, sp) == end_sp:
            return stops
        called = frame.name()
        stop: dict[str, Any] = {"pc": at, "called": called}
        for mode in ("always", "off"):
            execute(f"set sframe mode {mode}")
            stop[mode] = _callers(end, sp, saved)
        execute("set sframe mode always")
        stops.append(stop)
        if called == "sample_stop":
            execute("disable")
            execute("finish")  # with the caller's frame as it is shown
            execute("enable")
        else:
            execute("stepi")


def _callers(end: int, sp: str, saved: tuple[str, ...]) -> dict[str, Any]:
    """Return a description of the caller, the frames outside it, and the reason why there are no more."""
    frames: list[gdb.Frame] = []
    frame: gdb.Frame | None = gdb.newest_frame()
    while frame is not None and len(frames) < 20:
        frames.append(frame)
        try:
            frame = frame.older()
        except gdb.error:
            break
    level = next((level for level, frame in enumerate(frames) if level and frame.pc() == end), None)
    if level is None:
        return {"level": None}
    caller = frames[level]
    return {
        "level": level,
        "sp": _read(caller, sp),
        "saved": {name: _read(caller, name) for name in saved},
        "outside": [frame.name() for frame in frames[level:]],
    }


def _read(frame: gdb.Frame, register: str) -> int | None:
    try:
        value = frame.read_register(register)
        if value.type.code == gdb.TYPE_CODE_FLT:
            return int(value.format_string(format="x"), 16)
        return int(value) & _MASK
    except (gdb.error, ValueError):  # <not saved>
        return None


def _word(address: int) -> int:
    return int.from_bytes(bytes(gdb.selected_inferior().read_memory(address, 8)), "little")


def _go_to(address: int | None) -> None:
    execute(f"tbreak *{address:#x}")
    execute("continue")
