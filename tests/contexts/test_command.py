"""`sframe-unwind backtrace --regs` for a fiber of a running process, and texts that are not registers."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path

import pytest

from tests.contexts.expected import built
from tests.process.command import NOWHERE, backtrace, functions, only_line
from tests.process.programs import running


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("amd64", tmp_path_factory.mktemp("contexts"), "-no-pie", "-fno-pie")


def test_a_fiber_of_a_process(executable: Path) -> None:
    """Its registers are at the places where `switch_stack` of contexts.c saves them."""
    symbols = subprocess.run(["nm", str(executable)], check=True, capture_output=True, text=True).stdout
    found = re.search(r"^([0-9a-f]+) B switched$", symbols, re.MULTILINE)
    assert found is not None, symbols
    with running(executable, "wait") as process:
        memory = os.open(f"/proc/{process}/mem", os.O_RDONLY)
        try:
            (saved,) = struct.unpack("<Q", os.pread(memory, 8, int(found[1], 16)))
            fp, pc = struct.unpack("<QQ", os.pread(memory, 16, saved + 40))
        finally:
            os.close(memory)
        registers = f"pc={pc:#x}, sp={saved + 56}, fp={fp:#x}"
        done = backtrace("--pid", str(process), "--regs", registers, "--json", *NOWHERE)
        shown = backtrace("--pid", str(process), "--regs", registers, *NOWHERE)
        wrong = {
            "pc=1": "no value for sp and fp, expected pc=VALUE,sp=VALUE,fp=VALUE",
            "pc=main,sp=1,fp=2": "--regs: 'main' is not a number",
            "pc=1,sp=2,fp=3,x0=4": "amd64 has no register 'x0'",
        }
        refused = {text: backtrace("--pid", str(process), "--regs", text) for text in wrong}
    assert (done.status, done.errors) == (0, "")
    assert list(done.threads) == ["context"]
    assert functions(done.threads["context"]) == [*["switched_inner"] * 3, "switched_body", "switched_start"]
    assert {frame["unwinder"] for frame in done.threads["context"]} == {"sframe"}
    lines = shown.output.splitlines()
    assert lines[0] == f"Context pc={pc:#x}, sp={saved + 56:#x}, fp={fp:#x}"
    assert lines[-1] == "end: outermost frame"
    for text, message in wrong.items():
        assert refused[text].status == 2, text
        assert only_line(refused[text].errors) == f"sframe-unwind: {message}"
