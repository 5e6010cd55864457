"""At every instruction, the frames by SFrame equal GDB's own and those of the executed calls and returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest

from tests.abis.cells import ENCODED
from tests.abis.debuggers import debugger, described, sysroot
from tests.abis.rewrite import rewritten_copy
from tests.abis.steps import LIMIT, Walk, explains, known, walks
from tests.abis.summary import STEPPED
from tests.expectations import Stop
from tests.gdb.driver import call
from tests.gdb.programs import built


@pytest.mark.parametrize("walk", list(walks()), ids=lambda walk: "-".join(map(str, walk)))
def test_walk(walk: Walk, tmp_path: Path, record_property: Callable[[str, Any], None]) -> None:
    result = stepped(walk, tmp_path)
    record_property(f"{STEPPED} on {walk.abi}", result["count"])
    assert not result["limited"]
    assert result["count"] >= walk.least
    assert result["by sframe"] >= result["count"]
    entries = known(walk)
    unknown = [found for found in result["differences"] if not any(explains(entry, found) for entry in entries)]
    assert not unknown
    for entry in entries:
        assert any(explains(entry, found) for found in result["differences"]), f"not seen: {entry}"


def stepped(walk: Walk, folder: Path) -> dict[str, Any]:
    """Return the results of the functions inside GDB for a walk."""
    encoded = (walk.abi, walk.version) in ENCODED
    path = built(walk.sample, walk.abi, 3 if encoded else walk.version, walk.variant)
    if encoded:
        path = rewritten_copy(path, folder, walk.version)
    program = described(Stop(walk.sample, ()), path, walk.abi, walk.debugger)
    result: dict[str, Any] = call(
        debugger(walk.debugger, walk.abi),
        "tests.abis.inside.walking.walk",
        program=program,
        first=walk.first,
        limit=LIMIT,
        sysroot=sysroot(walk.abi),
    )
    return result
