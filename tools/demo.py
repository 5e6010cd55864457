"""Demonstrates both plugins: stops a program in GDB and in LLDB, and shows its stack by SFrame and by DWARF.

Then it does the same with a build that has SFrame as its only unwind data.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from sframe_unwind.machine.personality import gdb_settings, lldb_settings  # noqa: E402
from tests.samples.build import BuildError, build  # noqa: E402
from tools.binutils import ToolchainUnavailable  # noqa: E402
from tools.debuginfod import NO_SERVER  # noqa: E402
from tools.ending import exit_with  # noqa: E402

TIMEOUT = 120
"""Time limit for one session of a debugger, in seconds."""

_WITH_DWARF = ("bt", "sframe bt", "sframe compare", "up", "sframe explain", "sframe status")
_GDB_ALONE = ("set sframe mode off", "bt", "set sframe mode always", "bt", "sframe compare")
_LLDB_ALONE = ("sframe mode off", "bt", "sframe mode always", "bt", "sframe compare")


def main() -> int:
    """Run the demonstration; return the exit status."""
    gdb, lldb = _find("gdb"), _find("lldb")
    for name, found in (("gdb", gdb), ("lldb", lldb)):
        if found is None:
            print(f"demo: no {name} here; its sessions are left out", file=sys.stderr)
    try:
        sample, bare, stripped = build("callback", variant="O0"), build("sframe_only"), build("sframe_only_stripped")
    except (BuildError, ToolchainUnavailable, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    sessions = (
        (
            "A program with SFrame and DWARF in GDB: qsort of the C library, which has no SFrame, calls back into it",
            gdb and _gdb(gdb, sample, _WITH_DWARF),
        ),
        ("The same in LLDB", lldb and _lldb(lldb, sample, _WITH_DWARF)),
        (
            "A program whose only unwind data is SFrame: GDB alone, then with SFrame",
            gdb and _gdb(gdb, bare, _GDB_ALONE),
        ),
        ("The same, stripped: LLDB alone, then with SFrame", lldb and _lldb(lldb, stripped, _LLDB_ALONE)),
    )
    possible = [(title, command) for title, command in sessions if command]
    for number, (title, command) in enumerate(possible):
        print(f"\n# {title}" if number else f"# {title}", flush=True)
        status = _run(command)
        if status:
            return status
    return 0 if possible else 2


def _find(debugger: str) -> str | None:
    return shutil.which(debugger, path=str(Path(sys.prefix) / "bin")) or shutil.which(debugger)


def _gdb(gdb: str, program: Path, commands: tuple[str, ...]) -> list[str]:
    """Stop the program in its innermost function in GDB and run the commands; print each command and its output."""
    arguments = [gdb, "-nx", "-q", "-batch"]
    setup = (
        *gdb_settings(),
        "set debuginfod enabled off",
        "set pagination off",
        "set style enabled off",
        "set print entry-values no",
        f"source {CHECKOUT / 'gdb_plugin' / 'sframe_gdb.py'}",
        "set breakpoint pending on",
        "break sample_stop",
        "run >/dev/null",
    )
    for command in setup:
        arguments += ["-ex", command]
    for command in commands:
        arguments += ["-ex", f"echo \\n(gdb) {command}\\n", "-ex", command]
    return [*arguments, str(program)]


def _lldb(lldb: str, program: Path, commands: tuple[str, ...]) -> list[str]:
    """Stop the program in its innermost function in LLDB and run the commands, which LLDB prints itself."""
    arguments = [lldb, "--no-lldbinit", "--no-use-colors", "--batch"]
    for line in (*lldb_settings(), f'command script import "{CHECKOUT / "lldb_plugin" / "sframe_lldb.py"}"'):
        arguments += ["-O", line]
    for command in ("breakpoint set -n sample_stop", "process launch -o /dev/null", *commands):
        arguments += ["-o", command]
    return [*arguments, str(program)]


def _run(command: list[str]) -> int:
    try:
        environment = {**os.environ, "DEBUGINFOD_URLS": NO_SERVER}
        return subprocess.run(command, env=environment, timeout=TIMEOUT, check=False).returncode
    except subprocess.TimeoutExpired:
        print(f"demo: {Path(command[0]).name} did not finish within {TIMEOUT} seconds", file=sys.stderr)
        return 1


if __name__ == "__main__":
    exit_with(main)
