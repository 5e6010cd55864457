"""The debuggers to measure, and functions that run them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from bench.report import BenchError, Unavailable
from tools.debuginfod import NO_SERVER

CHECKOUT = Path(__file__).resolve().parents[1]
PLUGIN = CHECKOUT / "gdb_plugin" / "sframe_gdb.py"
TIMEOUT = 600
"""Time limit for one run of a debugger, in seconds."""

_ENVIRONMENT = {**os.environ, "DEBUGINFOD_URLS": NO_SERVER, "LC_ALL": "C.UTF-8"}


def run(name: str, command: list[str], **environment: str) -> str:
    """Return what a debugger prints on stdout and stderr.

    :raises BenchError: it does not end.
    """
    try:
        done = subprocess.run(
            command,
            env={**_ENVIRONMENT, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{name}: no end within {TIMEOUT} s: {' '.join(command)}") from error
    return done.stdout


class Gdb(NamedTuple):
    """One GDB."""

    name: str
    """Name with version, such as ``GDB 18.1``."""
    path: str
    installed: bool
    """It belongs to this environment; otherwise it is the system's."""

    def run(self, *arguments: str) -> str:
        """Run GDB without init files; return what it prints on stdout and stderr."""
        return run(self.name, [self.path, "-nx", "-batch", *arguments])

    def call(self, program: Path, function: str, plugin: bool = True, **arguments: Any) -> Any:
        """Call a function of :mod:`bench.in_gdb` in this GDB, with the plugin loaded or not; return its result."""
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder) / "result.json"
            call = f"in_gdb.run({str(result)!r}, {function!r}, {arguments!r})"
            said = self.run(
                *(("-iex", f"source {PLUGIN}") if plugin else ()),
                *("-ex", f"python import sys; sys.path.append({str(CHECKOUT)!r}); from bench import in_gdb; {call}"),
                str(program),
            )
            if not result.exists():
                raise BenchError(f"{self.name}: {function}: {' / '.join(said.strip().splitlines()[-3:])}")
            return json.loads(result.read_text())


def all_gdbs() -> list[Gdb]:
    """Return the GDB of this environment and that of the system, if they exist."""
    scripts = Path(sys.executable).parent
    others = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(folder) != scripts]
    found = [(shutil.which("gdb", path=str(scripts)), True), (shutil.which("gdb", path=os.pathsep.join(others)), False)]
    return [Gdb(f"GDB {_version(path)}", path, installed) for path, installed in found if path]


def installed_gdb() -> Gdb:
    """Return the GDB of this environment.

    :raises Unavailable: there is none.
    """
    for gdb in all_gdbs():
        if gdb.installed:
            return gdb
    raise Unavailable("no GDB from PyPI in this environment")


def _version(path: str) -> str:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    return done.stdout.splitlines()[0].split()[-1] if done.stdout else "unknown"
