"""LLDB: stacks of contexts that do not run equal those of LLDB alone while they ran, also in a core file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.abis.debuggers import sysroot
from tests.contexts.expected import STOPS, built, check, commands
from tests.lldb.debuggers import PROVIDING, find
from tests.lldb.driver import call
from tests.samples.catalogue import ABIS


@pytest.mark.parametrize("name", PROVIDING)
@pytest.mark.parametrize(
    ("abi", "flags"),
    # On s390x, LLDB 22.1 and 23.1 crash without the plugin when a dynamically linked program starts, and in handlers.
    [("amd64", ()), ("aarch64", ()), ("aarch64", ("-static",)), ("s390x", ("-static",))],
)
def test_stacks(abi: str, flags: tuple[str, ...], name: str, tmp_path: Path) -> None:
    lldb = find(name)
    calm = abi == "s390x"
    executable = built(abi, tmp_path, *flags)
    program = {
        "executable": str(executable),
        "arguments": ["calm"] if calm else [],
        "emulator": ABIS[abi].emulator,
        "sysroot": sysroot(abi),
        "place": "sample_stop",
        "hits": STOPS - 2 * calm,
        "signals": ["SIGILL"],
    }
    core = "" if ABIS[abi].emulator else str(tmp_path / "core")
    answer = call(lldb, "contexts", "collect", program=program, commands=commands(abi), core=core)
    for said in (answer["live"], *([answer["dead"]] if core else [])):
        check(abi, answer["stops"], said, calm)
    assert not answer["live"][-1][0], answer["live"][-1]
    assert answer["selected"] == "sample_stop"
