"""The LLDBs to measure, and functions that run them."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.debuggers import CHECKOUT, TIMEOUT, run
from bench.report import BenchError
from sframe_unwind.machine.personality import lldb_settings

IMPORT = f'command script import "{CHECKOUT / "lldb_plugin" / "sframe_lldb.py"}"'
_PATHS = (Path(sys.executable).parent / "lldb", CHECKOUT / ".cache" / "lldb-22.1" / "bin" / "lldb")


class Lldb(NamedTuple):
    """One LLDB."""

    name: str
    """Name with version, such as ``LLDB 23.1.0``."""
    path: Path

    def run(self, *arguments: str, **environment: str) -> str:
        """Run LLDB without init files; return what it prints on stdout and stderr."""
        settings = [part for command in lldb_settings() for part in ("-O", command)]
        return run(self.name, [str(self.path), "--no-lldbinit", "--batch", *settings, *arguments], **environment)

    def call(
        self, program: Path, function: str, plugin: bool = True, settings: Sequence[str] = (), **arguments: Any
    ) -> Any:
        """Call a function of :mod:`bench.in_lldb` in this LLDB, with the plugin loaded or not; return its result.

        :param settings: commands before LLDB has the program, as in ``~/.lldbinit``.
        """
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder) / "result.json"
            job = json.dumps({"result": str(result), "function": function, "arguments": arguments})
            script = f'command script import "{CHECKOUT / "bench" / "in_lldb.py"}"'
            before = [part for command in ((IMPORT, *settings) if plugin else ()) for part in ("-O", command)]
            said = self.run(*before, "-o", script, str(program), BENCH_JOB=job)
            if not result.exists():
                raise BenchError(f"{self.name}: {' / '.join(said.strip().splitlines()[-3:])}")
            return json.loads(result.read_text())


def all_lldbs() -> list[Lldb]:
    """Return the LLDBs that take frames from a plugin: that of this environment, and the oldest supported one."""
    return [Lldb(f"LLDB {_version(path)}", path) for path in _PATHS if path.exists()]


def _version(path: Path) -> str:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    return done.stdout.split()[2] if done.stdout else "unknown"
