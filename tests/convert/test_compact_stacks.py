"""Stacks of threads that are stopped in a library with compacted SFrame equal those by DWARF CFI."""

from __future__ import annotations

from lab.cfi.libraries import FOLDERS
from lab.convert.compact_stacks import compare
from tests.missing import absent

STOPS = 16


def test_stacks_of_a_library() -> None:
    path = FOLDERS["amd64"] / "libnsl.so.1"
    if not path.exists():
        absent(f"{path} is not installed: stacks with compacted SFrame stay unchecked")
    result = compare(path, STOPS, seed=0, plain=False)
    seen = result.compact
    assert len(seen.stops) == STOPS
    assert seen.by_others == 0
    assert seen.by_sframe >= STOPS // 2
    assert {place for stacks in seen.views.values() for stack in stacks.values() for place, _ in stack} >= {path.name}
    assert {name: functions for name, functions in result.different.items() if name != "LLDB's own"} == {
        "GDB": [],
        "LLDB": [],
        "LLDB's SFrame": [],
        "backtrace": [],
    }
