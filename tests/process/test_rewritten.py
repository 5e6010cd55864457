"""Stacks of a program that BOLT has rewritten, where SFrame is that of the code before, compared with eu-stack's."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tests.hanging import HANG
from tests.missing import absent
from tests.process.command import NOWHERE, backtrace, functions
from tests.process.programs import running
from tests.rewriting.bolt import bolted, compiled

SECONDS = HANG
_FRAME = re.compile(r"^#\d+ +0x([0-9a-f]+)", re.MULTILINE)


def by_elfutils(process: int) -> list[int]:
    """Return the pcs of a process of one thread."""
    tool = shutil.which("eu-stack") or absent("eu-stack is not installed: what it is compared with stays untested")
    done = subprocess.run([tool, "-p", str(process)], capture_output=True, text=True, timeout=SECONDS, check=False)
    return [int(pc, 16) for pc in _FRAME.findall(done.stdout)]


def test_stacks_are_those_of_the_new_cfi(tmp_path: Path) -> None:
    program = bolted(compiled(tmp_path, 3, "-DBY_HAND"))
    unwinders = set()
    for number in range(1, 9):
        with running(program, str(number)) as process:
            done = backtrace("--pid", str(process), "--json", *NOWHERE)
            expected = by_elfutils(process)
        (frames,) = done.threads.values()
        assert [frame["pc"] for frame in frames] == expected
        names = functions(frames)
        own = names.index("stop_here")
        assert "pause" in names[:own]  # the innermost frame, until glibc 2.41 got functions within it
        assert names[own : own + 4] == ["stop_here", "work", "outer", "main"]
        unwinders.add(tuple(frame["unwinder"] for frame in frames[own : own + 4]))
    assert all("dwarf" in names for names in unwinders), unwinders
    assert all("sframe" in names for names in unwinders), unwinders  # rows that still are what the CFI says
