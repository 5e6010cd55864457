"""Records programs on the spot, and compares the stacks by DWARF with those of ``perf script``.

    python -m tests.perf.recordings [NAME ...]

prints a row for each recording.  ``perf script`` of Debian's perf 6.1 unwinds with libdw.
"""

from __future__ import annotations

import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sframe_unwind.perf.judging import Unwound, Verdict, frames
from sframe_unwind.perf.sample_walk import NO_CFI
from tests.perf import programs
from tests.perf.unwinding import stacks_of_perf, unwound

_PYTHON = "import json\nfor i in range(700): json.loads(json.dumps([{'a': [j, str(j)]} for j in range(300)], indent=1))"
_JAVASCRIPT = """
function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
let s = 0; for (let i = 0; i < 12; i++) s += f(30) + JSON.stringify(Array.from({length: 9999}, (_, j) => [j])).length;
"""
_FORK, _COMM, _EXEC = 7, 3, 0x2000
_UNUSED_PID = 0x7FFF0000
KEPT_MAPS = "perf keeps the maps of the parent"
END_OF_COPY = "perf ends one frame earlier at the end of the copy"


class Recorded(NamedTuple):
    """A recording to be made."""

    name: str
    command: Sequence[str]
    options: Sequence[str] = ()
    dump: int = 16384


class Compared(NamedTuple):
    """How the stacks of a recording compare."""

    samples: int
    equal: int
    differences: Counter[str]


def recordings() -> list[Recorded]:
    """Return the recordings, which need perf, GCC, Debian's Python and Node.js."""
    sorting = str(programs.sorting())
    threads = str(programs.compiled("threads.cpp", programs.BUILT))
    return [
        Recorded("C", [sorting]),
        Recorded("C++ threads", [threads]),
        Recorded("python3", ["/usr/bin/python3", "-c", _PYTHON]),
        Recorded("node (JIT)", ["node", "-e", _JAVASCRIPT]),
        Recorded("C++ threads, 4 KB dumps", [threads], dump=4096),
        Recorded("shell", ["sh", "-c", f"{sorting}; {threads}; {sorting} & {sorting}; wait"]),
        Recorded("system-wide", ["sh", "-c", f"{threads}; {sorting} & {sorting}; wait"], ("-a", "-e", "cpu-clock")),
    ]


def without_parents(data: bytes) -> bytes:
    """Return a recording in which a process has no parent if its own maps are recorded.

    These are processes that execute another program, and those that were there before: their parents have time 0.
    perf 6.1 keeps the maps that a process got from its parent, and ends its stacks early or leaves out frames.
    """
    changed = bytearray(data)
    start, size = struct.unpack_from("<QQ", data, 40)
    forks: list[tuple[int, int, int]] = []
    executing = set()
    at = start
    while at < start + size:
        kind, misc, length = struct.unpack_from("<IHH", data, at)
        pid, parent = struct.unpack_from("<II", data, at + 8) if length >= 16 else (0, 0)
        if kind == _FORK and pid != parent:
            forks.append((at, pid, struct.unpack_from("<Q", data, at + 24)[0]))
        elif kind == _COMM and misc & _EXEC:
            executing.add(pid)
        at += length
    for at, pid, time in forks:
        if pid in executing or not time:
            struct.pack_into("<IIII", changed, at + 8, *(_UNUSED_PID,) * 4)
    return bytes(changed)


def compare(path: Path) -> Compared:
    """Compare the stacks of a recording with those of ``perf script``."""
    expected = stacks_of_perf(path)
    other = path.with_suffix(".without-parents")
    other.write_bytes(without_parents(path.read_bytes()))
    corrected = stacks_of_perf(other)
    other.unlink()
    found = unwound(path)
    differences: Counter[str] = Counter()
    for one in found:
        key = one.sample.tid, one.sample.time
        difference = _difference(one, expected[key])
        if difference and not _difference(one, corrected[key]):
            difference = KEPT_MAPS
        if difference:
            differences[difference] += 1
    return Compared(len(found), len(found) - sum(differences.values()), differences)


def _difference(one: Unwound, theirs: list[int]) -> str:
    """Return how a stack differs from perf's; empty: it does not."""
    judged = one.by_method["dwarf"]
    ours = []
    for lookup in frames(judged.stack):
        _, without_file = one.space.place(lookup)
        ours.append(lookup if without_file else one.space.offset(lookup))
    if ours == theirs:
        return ""
    if theirs == ours[: len(theirs)]:
        if judged.verdict is Verdict.CUT and len(theirs) == len(ours) - 1:
            return END_OF_COPY
        return f"perf ends {len(ours) - len(theirs)} frames earlier ({judged.verdict.value})"
    if ours != theirs[: len(ours)]:
        return f"other frames ({judged.verdict.value})"
    return "perf goes on by frame pointers" if judged.reason == NO_CFI else f"perf goes on ({judged.reason})"


def main(names: Sequence[str]) -> None:
    """Print a row for each recording."""
    print("| recording | samples | equal | differences |\n|---|--:|--:|---|")
    for recorded in recordings():
        if names and recorded.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = programs.record_command(recorded.command, Path(folder), *recorded.options, dump=recorded.dump)
            compared = compare(path)
        differences = "; ".join(f"{what}: {count}" for what, count in compared.differences.most_common())
        print(f"| {recorded.name} | {compared.samples} | {compared.equal} | {differences} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
