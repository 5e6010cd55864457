"""Steps a program by instruction; compares SFrame, GDB's own unwinder, and the calls and returns that were executed."""

from __future__ import annotations

import json
from typing import Any

from tests.abis.inside.account import Account
from tests.gdb.inside.program import execute, run_to, stopped


def walk(program: dict[str, Any], first: str, limit: int, sysroot: str) -> dict[str, Any]:
    """Step from the first instruction of a function to its last, including all that it calls.

    :param program: in the form of `tests.abis.debuggers.described`; its place does not matter.
    :param first: the function.
    :param limit: maximum number of instructions.
    """
    if sysroot:
        execute(f"set sysroot {sysroot}")
    execute(f"set solib-search-path {program['libraries']}")
    # At each frame's pc, GDB looks for the code of signal trampolines: 30 of the 45 packets of a step under an
    # emulator.  The other tests of this folder let it read code from the process.
    execute("set trust-readonly-sections on")
    with stopped(program):
        run_to(f"*{first}")
        execute("delete")
        execute("set sframe mode off")  # until the account has read the registers
        account = Account()
        execute("set sframe mode always")
        differences = []
        by_sframe = count = 0
        while count < limit:
            count += 1
            thread = json.loads(execute("sframe compare --json"))["threads"][0]
            by_sframe += sum(frame["unwinder"] == "sframe" for frame in thread["frames"])
            frames = account.frames()
            wrong = _wrong(thread, frames)
            if wrong:
                differences.append({"wrong": wrong, "unwinder": _unwinder(thread, frames), **_where(account.pc)})
            execute("stepi")
            if not account.follow():
                break
        return {"count": count, "limited": count >= limit, "by sframe": by_sframe, "differences": differences}


def _wrong(thread: dict[str, Any], frames: list[tuple[int, int]]) -> list[str]:
    """Return which unwinders differ from the account; without an account, whether they differ from each other."""
    wrong = []
    for who, pc, cfa in (("native", "pc", "cfa"), ("sframe", "sframe_pc", "sframe_cfa")):
        if [(frame[pc], frame[cfa]) for frame in thread["frames"][: len(frames)]] != frames:
            wrong.append(who)
    return wrong if wrong or thread["agrees"] else ["frame pointer, or frames further out"]


def _unwinder(thread: dict[str, Any], frames: list[tuple[int, int]]) -> str:
    """Return the unwinder of the innermost frame in which mode `always` differs; later frames may follow from it."""
    for shown, frame in zip(thread["frames"], frames):
        if (shown["sframe_pc"], shown["sframe_cfa"]) != frame:
            return str(shown["unwinder"])
    return ""


def _where(pc: int) -> dict[str, str]:
    symbol = execute(f"info symbol {pc:#x}").partition(" in section")[0].strip()
    return {"symbol": symbol, "instruction": execute(f"x/i {pc:#x}").split(":", 1)[1].strip()}
