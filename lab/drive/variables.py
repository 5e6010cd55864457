"""Counts the arguments and locals in all frames at stops in real programs, with and without the plugin.

    python -m lab.drive.variables [--debugger NAME ...] [--mode MODE]

Every value that is shown without the plugin must be shown with it, and be equal.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lab.drive import gdb_commands, lldb_commands, scene
from lab.drive.building import built
from lab.drive.debuggers import DEBUGGERS, MODES, WITHOUT, Debugger
from lab.drive.programs import Build, named
from tests.hanging import HANG

PLACES = {
    "bzip2-O2": (
        *("BZ2_hbMakeCodeLengths", "BZ2_hbAssignCodes", "BZ2_compressBlock", "fallbackSort", "BZ2_bzCompress"),
        *("handle_compress", "BZ2_bzWrite", "BZ2_bzWriteClose64", "BZ2_blockSort", "BZ2_bzWriteOpen"),
    ),
    "lua-O2": (
        *("luaD_call", "lua_pcallk", "luaL_loadfilex", "str_format", "luaH_resize", "luaL_tolstring", "auxsort"),
        *("gmatch_aux", "luaD_throw", "luaC_fullgc"),
    ),
    "sqlite3-O2": (
        *("sqlite3RunParser", "sqlite3Select", "sqlite3WhereBegin", "sqlite3ExprCodeTarget", "sqlite3VdbeExec"),
        *("sqlite3BtreeInsert", "sqlite3CreateIndex", "sqlite3VdbeHalt", "sqlite3EndTable", "shell_exec"),
    ),
}
"""The places at which three programs are stopped; each after a new start."""
SECONDS = HANG
_ABSENT = ("error: ", "<optimized out>", "<error")


@dataclass
class Count:
    """The counts of the stops."""

    stops: int = 0
    frames: int = 0
    without: int = 0
    """Number of values that are shown without the plugin."""
    same: int = 0
    """Number of those that are shown with it, and are equal."""
    lost: list[str] = field(default_factory=list)
    """The other values."""


def count(debugger: Debugger, name: str, mode: str) -> Count:
    """Stop a program at its places without the plugin and with it in a mode."""
    total, build = Count(), named(name)
    pairs = zip(stops(debugger, build, WITHOUT), stops(debugger, build, mode))
    for place, (before, now) in zip(PLACES[name], pairs):
        total.stops += bool(before)
        total.frames += len(before)
        if [frame for frame, _ in before] != [frame for frame, _ in now]:
            total.lost.append(f"{place}: other frames")
        for (function, own), (_, others) in zip(before, now):
            for (variable, kind, value), (_, _, found) in zip(own, others):
                if any(word in value for word in _ABSENT):
                    continue
                total.without += 1
                total.same += value == found
                if value != found:
                    total.lost.append(f"{place}: {function}: {kind} {variable} = {value[:60]}, now {found[:60]}")
            if len(own) != len(others):
                total.lost.append(f"{place}: {function}: {len(own)} variables, now {len(others)}")
    return total


def stops(debugger: Debugger, build: Build, mode: str) -> Iterator[list[Any]]:
    """Yield the frames at each place, with function and variables."""
    arguments = scene.arguments(build)
    with scene.session(debugger, build, built(build), mode) as channel:
        channel.perform(debugger.first_lines(False), False, 0, SECONDS)
        for place in PLACES[build.name]:
            language = gdb_commands if debugger.is_gdb else lldb_commands
            lines = [*language.delete(), *language.start_at(build, arguments, place)]
            _, state = channel.perform(lines, True, -1, SECONDS)
            yield state.get("every", [])


def main() -> int:
    """Print the table, and the lost values; return exit status 1 if there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--debugger", action="append", choices=list(DEBUGGERS), help="default: all four")
    parser.add_argument("--mode", choices=[*MODES, "strict"], default="always", help="default: always")
    options = parser.parse_args()
    lost = []
    print("| debugger | program | stops | frames | shown without | the same with |\n|---|---|--:|--:|--:|--:|")
    for debugger in options.debugger or DEBUGGERS:
        for name in PLACES:
            found = count(DEBUGGERS[debugger], name, options.mode)
            lost += [f"{debugger} {name}: {line}" for line in found.lost]
            cells = (debugger, name, found.stops, found.frames, found.without, found.same)
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    print("\n".join(lost))
    return bool(lost)


if __name__ == "__main__":
    raise SystemExit(main())
