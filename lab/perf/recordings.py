"""Records programs, and compares the stacks by DWARF with those of ``perf script``.

    python -m lab.perf.recordings [NAME ...]

prints a row for each recording.  ``perf script`` of Debian's perf 6.1 unwinds with libdw.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lab.perf.programs_apart import programs_apart
from sframe_unwind.perf.code_file import NOT_FOUND
from sframe_unwind.perf.judging import Unwound, Verdict, frames
from sframe_unwind.unwind_rule import CFA
from tests.perf import programs
from tests.perf.unwinding import stacks_of_perf, unwound

_PYTHON = "import json\nfor i in range(700): json.loads(json.dumps([{'a': [j, str(j)]} for j in range(300)], indent=1))"
_JAVASCRIPT = """
function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
let s = 0; for (let i = 0; i < 12; i++) s += f(30) + JSON.stringify(Array.from({length: 9999}, (_, j) => [j])).length;
"""
METHOD = "dwarf+fp"
"""perf's method with libdw: it follows frame pointers if there is no CFI."""
KEPT_MAPS = "perf keeps the maps of an older program of the process"
GONE = "a file has gone since perf read it"
GENERATED = "perf ends at code without a file"
POPPED = "perf loses the frame pointer that an epilogue has popped, and the stack reaches the start of the thread"
OTHER_SP = "perf goes on with another SP after a frame without CFI"
END_OF_COPY = "perf ends one frame earlier at the end of the copy"


class Recorded(NamedTuple):
    """A recording to be made."""

    name: str
    command: Sequence[str]
    options: Sequence[str] = ()
    dump: int = 16384


class Compared(NamedTuple):
    """The comparison of a recording's stacks."""

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


def compare(path: Path) -> Compared:
    """Compare the stacks of a recording with those of ``perf script``."""
    expected = stacks_of_perf(path)
    apart, other = programs_apart(path), path.with_suffix(".apart")
    other.write_bytes(apart.data)
    corrected = {(apart.originals.get(tid, tid), time): stack for (tid, time), stack in stacks_of_perf(other).items()}
    other.unlink()
    found = unwound(path)
    differences: Counter[str] = Counter()
    for one in found:
        key = one.sample.tid, one.sample.time
        if _difference(one, expected[key]):
            differences[_difference(one, corrected[key]) or KEPT_MAPS] += 1
    return Compared(len(found), len(found) - sum(differences.values()), differences)


def _difference(one: Unwound, theirs: list[int]) -> str:
    """Return how a stack differs from perf's; empty: it does not differ."""
    judged = one.by_method[METHOD]
    lookups = list(frames(judged.stack))
    places = [one.space.place(lookup) for lookup in lookups]
    # perf prints addresses in generated code unchanged.
    ours = [
        lookup if not path or path.startswith("//anon") else one.space.offset(lookup)
        for lookup, (path, _) in zip(lookups, places)
    ]
    if ours == theirs:
        return ""
    if NOT_FOUND in (why for _, why in places):
        return GONE
    if theirs == ours[: len(theirs)]:
        if judged.verdict is Verdict.CUT and len(theirs) == len(ours) - 1:
            return END_OF_COPY
        if places[len(theirs) - 1][1]:
            return GENERATED
        if judged.verdict is Verdict.COMPLETE and _has_popped(one):
            return POPPED
        return f"perf ends {len(ours) - len(theirs)} frames earlier ({judged.verdict.value})"
    if ours != theirs[: len(ours)]:
        if _goes_on_without_cfi(one, ours, theirs):
            return OTHER_SP
        return f"other frames ({judged.verdict.value})"
    return f"perf goes on ({judged.reason})"


def _goes_on_without_cfi(one: Unwound, ours: list[int], theirs: list[int]) -> bool:
    """Return whether the stacks share the caller of a frame without CFI, and differ after it."""
    same = next(at for at, (our, their) in enumerate(zip(ours, theirs)) if our != their)
    lookups = list(frames(one.by_method[METHOD].stack))[: max(same - 1, 0)]
    return any(one.space.find_cfi(lookup) is None for lookup in lookups)


def _has_popped(one: Unwound) -> bool:
    """Return whether the innermost frame is at the end of an epilogue: the saved frame pointer is below SP."""
    found = one.space.find_cfi(one.by_method[METHOD].stack.pcs[0])
    if found is None or found.rule.cfa is None or found.rule.fp is None:
        return False
    return found.rule.cfa.base != CFA and found.rule.cfa.offset + found.rule.fp.offset < 0


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
