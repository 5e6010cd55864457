"""Steps a program by instruction, and compares both unwinders with the executed calls and returns.

The reference tracks frames without unwind data.  A call is an instruction after which the word at SP is the address
after that instruction.  The CFA of the new frame is the address after the return address, and the frame ends when SP
reaches it.  If DWARF and SFrame differ, the reference shows which one is wrong.
"""

from __future__ import annotations

import json
from typing import Any

import gdb

from tests.gdb.inside.frames import word
from tests.gdb.inside.program import execute, run_to, stopped

_MASK = (1 << 64) - 1
_LONGEST_CALL = 8
"""Bytes of the longest call instruction that a compiler writes on AMD64."""


class Account:
    """The frames from the innermost to the one in which the account began, according to the instructions."""

    def __init__(self, pc: int, sp: int) -> None:
        self.pc, self.sp = pc, sp
        self._calls = [(0, sp + 8)]
        """For each frame, from the outermost inward: the return address to its caller, and its CFA."""

    def follow(self, pc: int, sp: int) -> bool:
        """Record one instruction; return whether the outermost frame still exists."""
        if sp == self.sp - 8 and pc != (back := word(sp, "<")) and self.pc < back <= self.pc + _LONGEST_CALL:
            self._calls.append((back, sp + 8))
        while self._calls and sp >= self._calls[-1][1]:
            self._calls.pop()
        self.pc, self.sp = pc, sp
        return bool(self._calls)

    def frames(self) -> list[tuple[int, int]]:
        """Return pc and CFA of each frame from the innermost outward."""
        inward = reversed(self._calls)
        frames, pc = [], self.pc
        for back, cfa in inward:
            frames.append((pc, cfa))
            pc = back
        return frames


def walk(program: dict[str, Any], first: str, limit: int) -> dict[str, Any]:
    """Step from the first instruction of a function to its last; return where the unwinders differ from the account.

    :param program: in the form of `tests.gdb.programs.program`; its place does not matter.
    :param first: the function.
    :param limit: maximum number of instructions.
    """
    with stopped(program):
        run_to(f"*{first}")
        execute("delete")
        account = Account(*_registers())
        code = _sections()
        seen: dict[tuple[int, bool], set[str]] = {}
        differences = []
        count = 0
        while count < limit:
            count += 1
            thread = json.loads(execute("sframe compare --json"))["threads"][0]
            for level, frame in enumerate(thread["frames"]):
                if frame["unwinder"] is not None:  # not the outermost one
                    seen.setdefault((frame["sframe_pc"], level > 0), set()).add(frame["unwinder"])
            wrong = _wrong(thread, account.frames())
            if wrong:
                differences.append({"where": _where(account.pc, code), "wrong": wrong})
            execute("stepi")
            if not gdb.selected_inferior().pid or not account.follow(*_registers()):
                break
        return {
            "count": count,
            "limited": count >= limit,
            "differences": differences,
            "seen": [[pc, caller, sorted(names)] for (pc, caller), names in seen.items()],
            "code": code,
        }


def _wrong(thread: dict[str, Any], frames: list[tuple[int, int]]) -> list[str]:
    """Return which unwinders differ from the account; both if they only differ from each other."""
    wrong = []
    for who, keys in (("native", ("pc", "cfa")), ("sframe", ("sframe_pc", "sframe_cfa"))):
        told = [(frame[keys[0]], frame[keys[1]]) for frame in thread["frames"][: len(frames)]]
        if told != frames:
            wrong.append(who)
    return wrong if wrong or thread["agrees"] else ["frame pointer, or frames further out"]


def _where(pc: int, code: list[tuple[str, int, int]]) -> dict[str, Any]:
    """Return function and section of an address, and the instruction there."""
    section = next((name for name, start, end in code if start <= pc < end), "")
    symbol = execute(f"info symbol {pc:#x}").strip()
    instruction = execute(f"x/i {pc:#x}").split(":", 1)[1].strip()
    return {"pc": pc, "section": section, "symbol": symbol, "instruction": instruction}


def _sections() -> list[tuple[str, int, int]]:
    """Return the sections of code of the executable."""
    found = []
    for line in execute("info files").splitlines():
        fields = line.split()
        if len(fields) == 5 and fields[3] == "is" and fields[4].startswith((".text", ".plt", ".init", ".fini")):
            found.append((fields[4], int(fields[0], 16), int(fields[2], 16)))
    return found


def _registers() -> tuple[int, int]:
    frame = gdb.newest_frame()
    return frame.pc(), int(frame.read_register("rsp")) & _MASK
