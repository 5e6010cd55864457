"""The stacks of a recording, by the package and by perf."""

from __future__ import annotations

import subprocess
from pathlib import Path

from sframe_unwind.perf.judging import Judge, Unwound
from sframe_unwind.perf.machines import arch_of
from sframe_unwind.perf.methods import METHODS
from sframe_unwind.perf.recording import Recording
from sframe_unwind.perf.sample import Sample
from sframe_unwind.perf.spaces import Spaces
from sframe_unwind.process.files import DEBUG_FOLDER, Files
from tests.hanging import HANG

KEPT_BY_PERF = str(Path("~/.debug").expanduser())
KERNEL = 1 << 63
ALL = tuple(METHODS)


def unwound(path: Path, convert: bool = False) -> list[Unwound]:
    """Return the samples of a recording with their stacks."""
    recording = Recording(path)
    arch = arch_of(recording.machine, recording.byteorder)
    machine = arch.elf_machine, arch.byteorder
    files = Files([""], [DEBUG_FOLDER, KEPT_BY_PERF], machine, lambda _: None, lines=False)
    spaces = Spaces(arch, files, recording.build_ids, convert)
    judge = Judge(arch, spaces, ALL)
    found = []
    for event in recording:
        if isinstance(event, Sample):
            found.append(judge.take(event))
        else:
            spaces.take(event)
    return [one for one in found if one is not None]


def stacks_of_perf(path: Path) -> dict[tuple[int, int], list[int]]:
    """Return thread and time of each sample, and its frames as offsets in their files.

    By default, perf leaves out frames beyond the 127th, of kernel and program together.
    """
    command = ["perf", "script", "--ns", "--no-inline", "-F", "tid,time,ip", "--max-stack", "4000", "-i", str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANG).stdout
    found = {}
    for block in printed.strip().split("\n\n"):
        first, *rest = block.splitlines()
        tid, time = first.split()
        addresses = [int(line, 16) for line in rest]
        found[int(tid), int(time.rstrip(":").replace(".", ""))] = [at for at in addresses if at < KERNEL]
    return found
