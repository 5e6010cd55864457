"""The main job in one go: a program compiled with SFrame, stopped in GDB, its stack by SFrame and against DWARF.

Then the same program with SFrame as its only unwind data, which is where nothing else gets through.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from tests.samples.build import BuildError, build  # noqa: E402
from tools.binutils import ToolchainUnavailable  # noqa: E402

TIMEOUT = 120
"""Seconds that one session of the debugger may take."""

_WITH_DWARF = ("bt", "sframe bt", "sframe compare", "up", "sframe explain", "sframe status")
_WITHOUT_DWARF = ("set sframe mode off", "bt", "set sframe mode always", "bt", "sframe compare")


def main() -> int:
    """Run the demonstration; return the exit status."""
    gdb = shutil.which("gdb", path=str(Path(sys.prefix) / "bin")) or shutil.which("gdb")
    if gdb is None:
        print("demo: no gdb here; the set-up installs one: python3 tools/setup.py --for demo", file=sys.stderr)
        return 2
    try:
        sample, bare = build("callback", variant="O0"), build("sframe_only")
    except (BuildError, ToolchainUnavailable) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    print("# A program with SFrame and DWARF: qsort of the C library, which has no SFrame, calls back into it")
    status = _session(gdb, sample, _WITH_DWARF)
    print("\n# A program whose only unwind data is SFrame: GDB alone, then with SFrame")
    return status or _session(gdb, bare, _WITHOUT_DWARF)


def _session(gdb: str, program: Path, commands: tuple[str, ...]) -> int:
    """Stop the program in its innermost function and run the commands, each shown before its output."""
    arguments = [gdb, "-nx", "-q", "-batch"]
    setup = (
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
    try:
        return subprocess.run([*arguments, str(program)], timeout=TIMEOUT, check=False).returncode
    except subprocess.TimeoutExpired:
        print(f"demo: GDB did not finish within {TIMEOUT} seconds", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
