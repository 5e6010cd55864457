"""Compares stacks of processes stopped inside files with plain and with compacted SFrame, and by DWARF CFI.

    python -m lab.convert.compact_stacks [--stops N] [--seed N] [FILE ...]

For each AMD64 file, threads call functions of a copy and are stopped after some instructions (``stops.c``).  GDB and
LLDB show their stacks in mode ``always`` and in mode ``off``, which is by DWARF CFI; ``sframe-unwind backtrace`` shows
them, too.  This is done once with the SFrame section as ``convert`` writes it, and once with that of ``convert
--compact``.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import subprocess
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lab.convert.sizes import files
from sframe_unwind import elf
from sframe_unwind.arch import amd64
from sframe_unwind.cfi.records import CfiFunction
from sframe_unwind.convert.kinds import DWARF
from sframe_unwind.convert.to_sframe import Wanted, convert_to_sframe
from sframe_unwind.translation.compact import MAX_ROWS
from sframe_unwind.unwind_rule import RegisterRule
from tests.abis.debuggers import newest
from tests.gdb import driver as gdb
from tests.hanging import HANG
from tests.lldb import debuggers as lldbs
from tests.lldb import driver as lldb
from tests.waiting import wait_until

_SOURCE = Path(__file__).with_name("stops.c")
_SECONDS = HANG
_AT_ENTRY = RegisterRule(amd64.ARCH.sp, 8, False)
"""The CFA at the entry of a function."""
_MOST_INSTRUCTIONS = 9
"""The number of executed instructions is at most 2 to this power."""

Place = tuple[str, int]
"""File name, and offset from the file's load address."""
Stacks = Mapping[int, Sequence[Place]]
"""The places of a stack's frames, by the function that was called."""


class Seen(NamedTuple):
    """The stacks of one process."""

    stops: Mapping[int, Place]
    """By the function's address in the file, the place where it, or a function that it calls, was interrupted."""
    views: Mapping[str, Stacks]
    """The stacks by the tool that shows them."""
    by_sframe: int
    """Number of frames in functions of the file that SFrame unwinds, in GDB."""
    by_others: int
    """Number of frames in functions of the file that something else unwinds."""


class Result(NamedTuple):
    """The result for one file."""

    path: Path
    compact: Seen
    different: Mapping[str, Sequence[int]]
    """The functions with differing stacks, by the compared views."""

    def __str__(self) -> str:
        seen = self.compact
        counts = " | ".join(str(len(functions)) for functions in self.different.values())
        return f"| `{self.path.name}` | {len(seen.stops)} | {seen.by_sframe} | {seen.by_others} | {counts} |"


def compare(path: Path, count: int, seed: int, plain: bool = True) -> Result:
    """Stop functions of a file, and compare their stacks.

    :param count: number of stops.
    :param plain: also compare with the plain section.
    """
    wanted = choose(path, count, seed)
    seen = look(path, wanted, MAX_ROWS)
    views = seen.views
    by_dwarf = views["GDB, off"]
    different = {
        "GDB": _differ(views["GDB, always"], by_dwarf) | _differ(views["GDB, SFrame"], by_dwarf),
        "LLDB": _differ(views["LLDB, always"], views["LLDB, off"]),
        # Without SFrame and CFI (LLDB has none of the vDSO), the debugger's own unwinder continues.
        "LLDB's SFrame": _differ(views["LLDB, SFrame"], by_dwarf) & _differ(views["LLDB, SFrame"], views["LLDB, off"]),
        "backtrace": _differ(views["backtrace"], by_dwarf),
        "LLDB's own": _differ(views["LLDB, off"], by_dwarf),
    }
    if plain:
        other = look(path, wanted, None)
        same_place = {function for function, place in seen.stops.items() if other.stops.get(function) == place}
        different["stopped elsewhere"] = seen.stops.keys() - same_place
        differ = (_differ(stacks, other.views[name]) for name, stacks in views.items())
        different["plain"] = set[int]().union(*differ) & same_place
    return Result(path, seen, {name: sorted(functions) for name, functions in different.items()})


def choose(path: Path, count: int, seed: int) -> list[tuple[int, int]]:
    """Return functions of a file, and the number of instructions to execute in each."""
    chance = random.Random(seed)
    with elf.opened(path) as binary:
        # Parts of functions do not begin this way; they are not called.
        found = [
            one.start
            for one in binary.cfi.all_functions()
            if isinstance(one, CfiFunction) and one.rows[0].cfa == _AT_ENTRY
        ]
    chosen = chance.sample(found, min(count, len(found)))
    return [(start, int(2 ** chance.uniform(0, _MOST_INSTRUCTIONS))) for start in chosen]


def look(path: Path, wanted: Sequence[tuple[int, int]], max_rows: int | None) -> Seen:
    """Stop functions of a copy, and return their stacks.

    :param wanted: the result of :func:`choose`.
    :param max_rows: maximum number of rows of an entry for several functions; ``None``: a plain section.
    """
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name, path.name)
        convert_to_sframe(path, copy, Wanted(source=DWARF, max_rows=max_rows))
        with _stopped(copy, wanted) as (pid, stops):
            by_gdb = gdb.call(newest("amd64"), "attached.stacks", seconds=_SECONDS, pid=pid)
            by_lldb = lldb.call(lldbs.find("newest"), "attached", "stacks", seconds=_SECONDS, pid=pid)
            ours = _backtrace(pid)
            places = _Places(Path(f"/proc/{pid}/maps").read_text(encoding="utf-8"))
    shown: dict[str, Mapping[str, Sequence[int]]] = {"backtrace": ours}
    for who, answer in (("GDB", by_gdb), ("LLDB", by_lldb)):
        shown |= {f"{who}, {mode}": answer[mode] for mode in ("off", "always")}
        shown[f"{who}, SFrame"] = {
            thread: [frame["sframe_pc"] for frame in frames if frame["sframe_pc"] is not None]
            for thread, frames in answer["sframe"].items()
        }
    views = {
        who: {stop.function: list(map(places.of, stacks[thread])) for thread, stop in stops.items()}
        for who, stacks in shown.items()
    }
    by_sframe = by_others = 0
    for thread in stops:
        for frame in by_gdb["sframe"][thread]:
            if frame["sframe_pc"] is not None and places.of(frame["sframe_pc"])[0] == path.name:
                by_sframe += frame["unwinder"] == "sframe"
                by_others += frame["unwinder"] != "sframe"
    interrupted = {stop.function: places.of(stop.pc) for stop in stops.values()}
    return Seen(interrupted, views, by_sframe, by_others)


class _Stop(NamedTuple):
    """The place of a thread."""

    function: int
    """The function that it has called, by its address in the file."""
    pc: int
    """The pc at which it was interrupted, in memory."""


@contextmanager
def _stopped(copy: Path, wanted: Sequence[tuple[int, int]]) -> Iterator[tuple[int, Mapping[str, _Stop]]]:
    """Run a process whose threads are stopped; yield its id, and the places of the threads by their ids."""
    is_library = ".so" in copy.name
    preloaded, described = copy.with_name("stops.so"), copy.with_name("stops")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", preloaded, _SOURCE], check=True, timeout=_SECONDS)
    lines = [str(copy) if is_library else "-", *(f"{function:x} {steps}" for function, steps in wanted)]
    described.write_text("\n".join(lines) + "\n", encoding="utf-8")
    preload = f"{preloaded}:{copy}" if is_library else preloaded
    # Code that binds symbols lazily has its CFA in a register that SFrame does not track.
    environment = ["env", "LD_BIND_NOW=1", f"SFRAME_STOPS={described}", f"LD_PRELOAD={preload}"]
    command = [*_same_addresses(), *environment, "/bin/true" if is_library else copy]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    told = copy.with_name("stops.stopped")
    try:
        wait_until(lambda: told.exists() or process.poll() is not None, "stopped", _SECONDS)
        if process.poll() is not None:
            raise OSError(f"{copy.name}: the process ends with status {process.returncode}")
        stops = {}
        for line in told.read_text(encoding="utf-8").splitlines():
            thread, function, pc = line.split()
            stops[thread] = _Stop(int(function, 16), int(pc, 16))
        yield process.pid, stops
    finally:
        process.kill()
        process.wait()


@functools.cache
def _same_addresses() -> tuple[str, ...]:
    """Return the command that loads a program at the same addresses each time, if that is permitted here."""
    command = ("setarch", "-R")
    done = subprocess.run([*command, "true"], stderr=subprocess.DEVNULL, timeout=_SECONDS, check=False)
    return command if not done.returncode else ()


def _backtrace(pid: int) -> dict[str, list[int]]:
    """Return the pcs in the output of ``sframe-unwind backtrace``, by thread."""
    command = [sys.executable, "-m", "sframe_unwind", "backtrace", "--pid", str(pid), "--json", "--no-lines"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)
    return {
        str(thread["id"]): [frame["pc"] for frame in thread["frames"]] for thread in json.loads(done.stdout)["threads"]
    }


class _Places:
    """Finds the file that contains an address.

    :param maps: the contents of ``/proc/PID/maps``.
    """

    def __init__(self, maps: str) -> None:
        self._starts: list[int] = []
        self._ends: list[tuple[int, str]] = []
        self._bases: dict[str, int] = {}
        for line in maps.splitlines():
            extent, *_, path = line.split(maxsplit=5)
            start, end = (int(part, 16) for part in extent.split("-"))
            self._bases.setdefault(path, start)
            self._starts.append(start)
            self._ends.append((end, path))

    def of(self, pc: int) -> Place:
        """Return file name and offset; without a file, return the address."""
        number = bisect_right(self._starts, pc) - 1
        end, path = self._ends[number] if number >= 0 else (0, "")
        return (Path(path).name, pc - self._bases[path]) if pc < end and path.startswith("/") else ("", pc)


def _differ(one: Stacks, other: Stacks) -> set[int]:
    return {function for function, stack in one.items() if other.get(function) != stack}


def main() -> int:
    """Compare, and print a line for each file; return exit status 1 if stacks differ that must not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", metavar="FILE", nargs="*", type=Path, help="files to compare instead")
    parser.add_argument("--stops", type=int, default=150, help="in each file (default: 150, most: 512)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of functions (default: 0)")
    options = parser.parse_args()
    paths = options.files or [path for machine, path in files(30) if machine == "amd64"]
    total: dict[str, int] = {}
    for path in paths:
        try:
            result = compare(path, options.stops, options.seed)
        except OSError as error:
            print(error, flush=True)
            total["failed"] = total.get("failed", 0) + 1
            continue
        if "stops" not in total:
            print(f"| file | stops | frames by SFrame | by others | {' | '.join(result.different)} |")
            print(f"|---|{'--:|' * (3 + len(result.different))}")
        print(result, flush=True)
        seen = result.compact
        counts = {"stops": len(seen.stops), "by SFrame": seen.by_sframe, "by others": seen.by_others}
        for name, count in {**counts, **{name: len(found) for name, found in result.different.items()}}.items():
            total[name] = total.get(name, 0) + count
        for name, functions in result.different.items():
            if functions:
                print(f"{path.name}: {name}: functions {', '.join(map(hex, functions[:5]))}", flush=True)
    print(", ".join(f"{name}: {count:,}" for name, count in total.items()))
    return int(any(total.get(name) for name in ("GDB", "LLDB", "LLDB's SFrame", "plain", "failed")))


if __name__ == "__main__":
    sys.exit(main())
