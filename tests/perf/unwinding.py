"""The stacks of a recording, by the package and by perf."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from sframe_unwind.perf.judging import Judge, Unwound
from sframe_unwind.perf.machines import arch_of
from sframe_unwind.perf.methods import BY_CODE, METHODS
from sframe_unwind.perf.recording import Recording
from sframe_unwind.perf.sample import Sample
from sframe_unwind.perf.spaces import Space, Spaces
from sframe_unwind.process.files import DEBUG_FOLDER, Files
from tests.hanging import HANG

KEPT_BY_PERF = str(Path("~/.debug").expanduser())
KERNEL = 1 << 63
ALL = tuple(name for name in METHODS if name not in BY_CODE)


def unwound(path: Path, convert: bool = False, methods: Sequence[str] = ALL, sysroot: str = "") -> list[Unwound]:
    """Return the samples of a recording with their stacks; see :func:`samples_of`."""
    recording = Recording(path)
    spaces = _spaces(recording, convert, sysroot)
    judge = Judge(arch_of(recording.machine, recording.byteorder), spaces, methods)
    found = [judge.take(sample) for sample, _ in _samples(recording, spaces)]
    return [one for one in found if one is not None]


def samples_of(path: Path, sysroot: str = "") -> Iterator[tuple[Sample, Space]]:
    """Yield the samples of a recording with their address spaces.

    :param sysroot: the folder whose files are preferred to those of the system; empty: none.
    """
    recording = Recording(path)
    yield from _samples(recording, _spaces(recording, False, sysroot))


def _spaces(recording: Recording, convert: bool, sysroot: str) -> Spaces:
    arch = arch_of(recording.machine, recording.byteorder)
    machine = arch.elf_machine, arch.byteorder
    roots = [sysroot, ""] if sysroot else [""]
    files = Files(roots, [DEBUG_FOLDER, KEPT_BY_PERF], machine, lambda _: None, lines=False)
    return Spaces(arch, files, recording.build_ids, convert)


def _samples(recording: Recording, spaces: Spaces) -> Iterator[tuple[Sample, Space]]:
    for event in recording:
        if isinstance(event, Sample):
            yield event, spaces.of(event.pid)
        else:
            spaces.take(event)


def stacks_of_perf(path: Path) -> dict[tuple[int, int], list[int]]:
    """Return thread and time of each sample, and its frames as offsets in their files; in generated code, as addresses.

    By default, perf leaves out frames beyond the 127th, of kernel and program together.
    """
    found = {}
    for block in _printed(path).strip().split("\n\n"):
        first, *rest = block.splitlines()
        tid, time = first.split()
        user = [line for line in rest if int(line.split()[0], 16) < KERNEL]
        found[int(tid), int(time.rstrip(":").replace(".", ""))] = [_place(line) for line in user]
    return found


def _place(line: str) -> int:
    """Return the offset of a frame in its file, or its address if it is in none."""
    address, _, file = line.strip().partition(" ")
    offset = re.search(r"\+0x([0-9a-f]+)\)$", file)
    return int(offset[1] if offset and not file.startswith("(//anon") else address, 16)


def _printed(path: Path) -> str:
    """Return what perf prints: addresses, with their offsets in files; in versions without `dsoff`, offsets alone."""
    for fields in ("tid,time,ip,dso,dsoff", "tid,time,ip"):
        command = ["perf", "script", "--ns", "--no-inline", "-F", fields, "--max-stack", "4000", "-i", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG)
        if done.returncode == 0:
            return done.stdout
    raise AssertionError(done.stderr)
