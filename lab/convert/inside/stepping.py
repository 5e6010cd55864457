"""Steps a program by instruction in GDB; compares the frames that only SFrame gives with GDB's own."""

from __future__ import annotations

import json
import re
from typing import Any

import gdb

from tests.abis.inside.chains import frames, without_limits
from tests.gdb.inside.program import execute, run_to, stopped

_SHOWN = 20
"""Maximum number of differences that are reported with details."""


def walk(program: dict[str, Any], steps: int, library_path: str, sysroot: str, settings: list[str]) -> dict[str, Any]:
    """Step from main on; in mode always with strict, all frames must be GDB's own, and found by SFrame.

    :param program: in the form of `tests.abis.debuggers.described`; its place does not matter.
    :param library_path: path for the program's dynamic linker; empty: it needs none.
    :param sysroot: sysroot for GDB; empty: it needs none.
    :param settings: further commands, before the walk.
    """
    if library_path:
        execute(f"set environment LD_LIBRARY_PATH {library_path}")
    if sysroot:
        execute(f"set sysroot {sysroot}")
    # _dl_runtime_resolve of AMD64 has its CFA in rbx, which SFrame does not track: only the innermost frame can use
    # that row.  GDB cannot step if it fails to unwind.
    execute("set environment LD_BIND_NOW 1")
    execute("set sframe strict on")
    for setting in settings:
        execute(setting)
    without_limits()
    with stopped(program):
        run_to("main")
        execute("delete")
        execute("handle SIGUSR1 nostop noprint pass")
        result = _Result()
        while result.count < steps and gdb.selected_inferior().pid:
            result.look()
            execute("stepi")
        return result.told()


class _Result:
    """The result of a walk."""

    def __init__(self) -> None:
        self.count = self.frames = self.in_library = 0
        self.others: dict[str, int] = {}
        """Frames that SFrame did not find, by unwinder, function or section, and file."""
        self.differences: list[dict[str, Any]] = []
        self.different = 0
        self.functions: set[str] = set()

    def look(self) -> None:
        """Compare the frames at this instruction."""
        strict = frames()
        thread = json.loads(execute("sframe compare --json"))["threads"][0]
        native = thread["frames"]
        self.count += 1
        self.frames += len(strict)
        library = gdb.solib_name(strict[0]["pc"]) or ""
        self.in_library += "libc.so" in library
        self.functions.add(strict[0]["name"])
        for shown in thread["frames"]:
            if not (shown["unwinder"] or "").startswith("sframe"):
                key = f"{shown['unwinder']} in {_place(shown['sframe_pc'])}"
                self.others[key] = self.others.get(key, 0) + 1
        same_pc = [one["pc"] for one in strict] == [one["pc"] for one in native]
        # The SP of a caller gives the CFA; the comparison has the frame pointers.
        distances = {outer["sp"] - inner["cfa"] for inner, outer in zip(native, strict[1:])}
        if not same_pc or len(distances) > 1 or not thread["agrees"]:
            self.different += 1
            if len(self.differences) < _SHOWN:
                where = execute(f"x/i {strict[0]['pc']:#x}").strip()
                self.differences.append({"where": where, "strict": strict, "compared": thread})

    def told(self) -> dict[str, Any]:
        """Return the result as JSON."""
        return {
            "count": self.count,
            "frames": self.frames,
            "in library": self.in_library,
            "functions": len(self.functions),
            "others": self.others,
            "different": self.different,
            "differences": self.differences,
        }


def _place(pc: int) -> str:
    """Return the function that contains an address, or its section, and the file."""
    symbol = re.match(r"(.+?)(?: \+ \d+)?(?: in section .*)?$", execute(f"info symbol {pc:#x}").strip())
    name = symbol[1] if symbol and "No symbol" not in symbol[1] else "??"
    return f"{name} of {(gdb.solib_name(pc) or 'the program').rpartition('/')[2]}"
