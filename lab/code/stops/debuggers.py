"""Runs the builds in the debuggers."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from lab.code.stops.building import Program
from lab.drive.scene import FIXED_MEMORY
from tests.abis.debuggers import debugger, sysroot
from tests.code_packages import code_packages
from tests.gdb import driver as gdb
from tests.lldb import driver as lldb
from tests.lldb.debuggers import find as find_lldb
from tests.samples.catalogue import ABIS

_GDBS = {"gdb": "pypi", "gdb-system": "system"}
_LLDBS = {"lldb": "newest", "lldb-22": "22.1"}
DEBUGGERS = (*_GDBS, *_LLDBS)
_GDB_MOVES = ("", "finish", "stepi", "", "nexti", "next", "", "step")
_LLDB_MOVES = ("", "thread step-out", "thread step-inst", "", "thread step-inst-over", "next", "", "step")


def collected(
    name: str, abi: str, program: Program, places: list[int], stops: int, executable: Path, by_code: bool
) -> list[dict[str, Any]]:
    """Return the stops of one build; see :func:`lab.code.stops.inside.gdb.collect`.

    :param by_code: with the plugin, and rows from the machine code; otherwise, the debugger alone.
    """
    described = {
        "executable": str(executable),
        "arguments": [],
        "emulator": _emulator(abi),
        "sysroot": sysroot(abi) if name in _LLDBS else "",
        "signals": list(program.signals),
    }
    own = name in ("gdb", "lldb")
    with nullcontext("") if own else code_packages() as python_path:
        if name in _GDBS:
            settings = ["set sframe generate code" if by_code else "set sframe mode off"]
            found: list[dict[str, Any]] = gdb.call(
                debugger(_GDBS[name], abi),
                "lab.code.stops.inside.gdb.collect",
                python_path=python_path,
                program=described,
                places=places,
                count=stops,
                settings=settings,
                moves=list(_GDB_MOVES),
            )
            return found
        in_lldb: list[dict[str, Any]] = lldb.call(
            find_lldb(_LLDBS[name]),
            "random_stops",
            "collect",
            python_path=python_path,
            program=described,
            places=places,
            count=stops,
            commands=["sframe generate code" if by_code else "sframe mode off"],
            moves=list(_LLDB_MOVES),
        )
        return in_lldb


def _emulator(abi: str) -> list[str]:
    """Return the command of an emulator that places libraries at the same addresses in each run; none: not needed."""
    words = ABIS[abi].emulator
    return [words[0], *FIXED_MEMORY, "-seed", "1", *words[1:]] if words else []
