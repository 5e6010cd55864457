"""The command; see the package."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from lab.real_programs import TIMEOUT, ProgramError, tools_for
from lab.study.programs import BUILDS, CASES, Work
from tools.binutils import ToolchainUnavailable, describe
from tools.debian import FetchError
from tools.ending import exit_with

METHODS = ("fp", "fp-mended", "sframe", "sframe-linux", "sframe+fp", "dwarf")
_COPY = 32768
_FREQUENCY = 997


class Row(NamedTuple):
    """One recording."""

    program: str
    frame_pointers: str
    found: dict[str, Any]
    """What ``perf --json`` prints."""


def recorded(work: Work, path: Path) -> None:
    """Record the user stacks of a command, which may end by a signal.

    :raises ProgramError: perf makes no recording.
    """
    beside = subprocess.Popen(work.beside, stdout=subprocess.DEVNULL) if work.beside else None
    options = ["-q", "-e", "cpu-clock:u", "-F", str(_FREQUENCY), "--call-graph", f"dwarf,{_COPY}", "-o", str(path)]
    command = ["perf", "record", *options, "--", *work.command]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=TIMEOUT, check=False)
    if beside is not None:
        beside.wait(TIMEOUT)
    if not path.exists():
        raise ProgramError(f"perf: {done.stderr.decode(errors='replace')[-200:]}")


def unwound(path: Path) -> dict[str, Any]:
    """Return what ``perf --json`` prints.  The system's libraries get SFrame by ``--convert``."""
    command = [sys.executable, "-m", "sframe_unwind", "perf", str(path), "--convert", "--json"]
    done = subprocess.run(
        [*command, "--method", ",".join(METHODS)], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    if done.returncode:
        raise ProgramError(done.stderr.strip())
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows(names: list[str]) -> Iterator[Row]:
    """Record each program, and unwind its samples."""
    for name in names:
        case = CASES[name]
        for how in BUILDS if case.build is not None else ("without",):
            print(f"{name}, {how} frame pointers", file=sys.stderr, flush=True)
            program = case.build(how) if case.build is not None else Path()
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "perf.data"
                recorded(case.work(program), path)
                yield Row(case.version(), how, unwound(path))


def table(found: list[Row]) -> Iterator[str]:
    """Yield the lines of the table in Markdown: complete stacks, and frames that are those of DWARF."""
    head = ["program", "frame pointers", "samples", "frames per sample", *(f"`{method}`" for method in METHODS)]
    yield f"| {' | '.join(head)} |"
    yield f"|---|---|{'--:|' * (len(head) - 2)}"
    for row in found:
        samples, frames = row.found["user_samples"], row.found["frames_by_cfi"]
        cells = [row.program, row.frame_pointers, f"{samples:,}", f"{frames / samples:.1f}"]
        for method in METHODS:
            complete, same = row.found["methods"][method]["complete"], row.found["frames"][method]
            cells.append(f"{100 * complete / samples:.1f} ({100 * same / frames:.1f})")
        yield f"| {' | '.join(cells)} |"


def blockers(found: list[Row]) -> Iterator[str]:
    """Yield the causes of incomplete stacks by SFrame and DWARF, and all errors, with their samples."""
    for row in found:
        for one in row.found["blockers"]:
            if one["method"] in ("sframe", "sframe-linux", "dwarf"):
                right = f"; right by the code: {one['right']}" if "right" in one else ""
                where = f"{one['function'] or '?'} in {Path(one['module']).name or '?'}"
                yield (
                    f"{row.program}, {row.frame_pointers} frame pointers: {one['method']}: {one['samples']}:"
                    f" {where}: {one['reason']}{right}"
                )


def circumstances() -> str:
    """Return the versions of what made the numbers."""
    compiler = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True, timeout=TIMEOUT)
    perf = subprocess.run(["perf", "--version"], capture_output=True, text=True, check=True, timeout=TIMEOUT)
    lines = (compiler.stdout.splitlines()[0], describe(tools_for("amd64")), perf.stdout.strip(), *platform.libc_ver())
    return f"{'; '.join(lines)}; Linux {platform.release()}, {platform.machine()}, {os.cpu_count()} processors"


def main() -> int:
    """Print the table; return exit status 2 if something is not available."""
    parser = argparse.ArgumentParser(prog="python -m lab.study", description="Study real programs under perf record.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CASES)}; default: all")
    options = parser.parse_args()
    if unknown := set(options.names) - set(CASES):
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    if shutil.which("perf") is None:
        parser.error("perf is not installed")
    try:
        found = list(rows(options.names or list(CASES)))
    except (ProgramError, FetchError, ToolchainUnavailable, subprocess.SubprocessError, OSError) as error:
        print(f"study: {error}", file=sys.stderr)
        return 2
    print("\n".join([*table(found), "", *blockers(found), "", circumstances()]))
    return 0


if __name__ == "__main__":
    exit_with(main)
