"""Builds one program four times: with and without CFI, each with and without symbols."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from sframe_unwind.elf import opened
from tests.hanging import HANG
from tests.samples.build import SAMPLES_FOLDER
from tests.samples.catalogue import ABIS

_OWN = Path(__file__).parent
_FLAGS = (
    *("-g0", "-fasynchronous-unwind-tables", "-fno-stack-protector", "-fomit-frame-pointer", "-fcf-protection=none"),
    *("-no-pie", "-fno-pie", "-w", "-pthread", f"-I{SAMPLES_FOLDER}", "-Wl,--build-id=sha1"),
)
_UNWIND_DATA = (".eh_frame", ".eh_frame_hdr", ".debug_frame", ".sframe")
_NOT_OURS = re.compile(r"_(start|init|fini)$|.*(_tm_clones|_dtors_aux|dummy|_relocate_static_pie)$|call_weak_fn")
"""Functions of the C library's start-up code."""
_APART = 3
"""Distance of the breakpoints, in instructions."""
WITH_CFI, WITHOUT_CFI, STRIPPED_WITH_CFI, STRIPPED = BUILDS = ("cfi", "none", "cfi-stripped", "stripped")
COMPARED = {WITHOUT_CFI: WITH_CFI, STRIPPED: STRIPPED_WITH_CFI}
"""The build with which each is compared."""


class Program(NamedTuple):
    """One program of the study."""

    source: str
    """A sample of ``tests/samples``, or a file beside this one."""
    level: str
    """The compiler's option."""
    signals: tuple[str, ...] = ()
    """The signals that it sends itself."""

    @property
    def name(self) -> str:
        """Its name in the table."""
        return f"{self.source} {self.level}"


PROGRAMS = (
    *(Program("indirect", level) for level in ("-O0", "-O2")),
    *(Program("stepper", level) for level in ("-O2", "-Os", "-O3")),
    *(Program(source, "-O2") for source in ("recursion", "dynamic", "callback", "realign")),
    Program("signals", "-O2", ("SIGUSR1", "SIGUSR2", "SIGALRM")),
    *(Program("handlers", level, ("SIGUSR1",)) for level in ("-O0", "-O2")),
)


def build(program: Program, abi: str, folder: Path) -> dict[str, Path]:
    """Return the builds of a program, by :data:`BUILDS`."""
    compiler = ABIS[abi].compiler
    objcopy = "objcopy" if compiler == "gcc" else compiler.replace("-gcc", "-objcopy")
    own = _OWN / f"{program.source}.c"
    source = own if own.exists() else SAMPLES_FOLDER / f"{program.source}.c"
    flags = [flag for flag in _FLAGS if abi == "amd64" or "cf-protection" not in flag]
    # The paths have the same length, because they are on the stack of the process.
    paths = {name: folder / str(number) / program.source for number, name in enumerate(BUILDS)}
    for path in paths.values():
        path.parent.mkdir()
    _run(compiler, program.level, *flags, source, "-o", paths[WITH_CFI])
    removed = [part for name in _UNWIND_DATA for part in ("-R", name)]
    _run(objcopy, *removed, paths[WITH_CFI], paths[WITHOUT_CFI])
    _run(objcopy, "--strip-all", paths[WITH_CFI], paths[STRIPPED_WITH_CFI])
    _run(objcopy, "--strip-all", *removed, paths[WITH_CFI], paths[STRIPPED])
    return paths


def _run(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=HANG, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stderr}")
    return done.stdout


def places(executable: Path, abi: str, count: int, rng: random.Random) -> list[int]:
    """Return the addresses of random instructions of a program's own functions, no two of which follow each other.

    Where a step ends, or begins, at a breakpoint, LLDB may report that again, or may not.
    """
    compiler = ABIS[abi].compiler
    objdump = "objdump" if compiler == "gcc" else compiler.replace("-gcc", "-objdump")
    with opened(executable) as binary:
        own = [
            (symbol.address, symbol.address + symbol.size)
            for symbol in binary.symbols
            if symbol.is_function and symbol.size and not _NOT_OURS.match(symbol.name)
        ]
    listed = _run(objdump, "-d", "--section=.text", executable)
    found = [int(address, 16) for address in re.findall(r"^ +([0-9a-f]+):\t", listed, re.MULTILINE)]
    inside = [address for address in found if any(start <= address < end for start, end in own)]
    apart = inside[rng.randrange(_APART) :: _APART]
    return sorted(rng.sample(apart, min(count, len(apart))))
