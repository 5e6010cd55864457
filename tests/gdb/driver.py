"""Runs GDB with the plugin, always with a time limit; a Python traceback in the output is a failure."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sframe_unwind.machine.personality import gdb_settings
from tests.hanging import HANG
from tests.launchers import launcher
from tests.transcripts import Transcript

CHECKOUT = Path(__file__).resolve().parents[2]
PLUGIN = CHECKOUT / "gdb_plugin" / "sframe_gdb.py"
_ENTRY = Path(__file__).resolve().parent / "inside" / "entry.py"
_INSIDE = "tests.gdb.inside"

LOCALE = "C" if str(CHECKOUT).isascii() else "C.UTF-8"
"""GDB alone cannot read a Python script whose path is not of its locale."""

SECONDS = HANG
"""Time limit for one run, in seconds."""

SETTINGS = (
    "set debuginfod enabled off",
    "set confirm off",
    "set pagination off",
    "set width 0",
    "set style enabled off",
    "set auto-load no",
    *gdb_settings(),
)
"""Settings that make runs equal on every machine."""

WITHOUT_DEBUG_FILES = "set debug-file-directory /nonexistent"
"""The C library's debug information may or may not be installed; reading it takes most of the time of a run."""

MINIMUM = 13

_BROKEN = re.compile(
    r"Python Exception|Traceback \(most recent call last\)|internal-error|internal problem|Error occurred in Python"
    r"|internal error, frame left to GDB|A fatal error"
)


class Debugger(NamedTuple):
    """One GDB."""

    name: str
    path: str
    version: tuple[int, ...]


class GdbFailed(AssertionError):  # noqa: N818 - an assertion that does not hold
    """GDB failed, or printed output that no user must see; the message has the output."""


def find(name: str, abi: str = "amd64") -> Debugger | None:
    """Return a GDB that is installed and new enough.

    :param name: ``pypi`` for the one of the Python environment, ``system`` for the system's, ``other`` for the one
        that the variable SFRAME_TEST_GDB names.
    """
    if name == "pypi":
        path = shutil.which(str(launcher("gdb")))
    elif name == "other":
        path = os.environ.get("SFRAME_TEST_GDB")
    else:
        path = _system_gdb("gdb" if abi == "amd64" else "gdb-multiarch")
    version = _version(path) if path else None
    return Debugger(name, path, version) if path and version and version[0] >= MINIMUM else None


def _system_gdb(command: str) -> str | None:
    own = str(Path(sys.prefix) / "bin")
    elsewhere = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder != own]
    return shutil.which(command, path=os.pathsep.join([*elsewhere, "/usr/bin"]))


@functools.cache
def _version(path: str) -> tuple[int, ...] | None:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=SECONDS, check=False)
    found = re.search(r"(\d+)\.(\d+)", done.stdout.partition("\n")[0][::-1])
    # Searched from the end of the line, where the version is.
    return tuple(int(part[::-1]) for part in reversed(found.groups())) if found else None


def environment(home: Path | None = None) -> dict[str, str]:
    """Return the environment of a GDB: English messages, no downloads, no init files except those in `home`."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DEBUGINFOD_URLS", "PYTHONPATH")}
    return {**kept, "LC_ALL": LOCALE, "TERM": "dumb", "HOME": str(home or "/nonexistent")}


def command_line(
    debugger: Debugger,
    *arguments: str,
    plugin: Path | None = PLUGIN,
    init: bool = False,
    debug_files: bool = False,
) -> list[str]:
    """Return the command that starts a GDB with the plugin.

    :param plugin: the script to source; ``None``: none.
    :param init: whether it reads init files.
    :param debug_files: whether it reads the debug information that Debian installs separately.
    """
    command = [debugger.path, "-q", *([] if init else ["-nx"])]
    for setting in (*SETTINGS, *(() if debug_files else (WITHOUT_DEBUG_FILES,))):
        command += ["-iex", setting]
    if plugin:
        command += ["-ex", f"source {plugin}"]
    return [*command, *arguments]


def check_output(text: str) -> str:
    """Return the text after checking that it has no traceback and no failure of GDB."""
    found = _BROKEN.search(text)
    if found:
        raise GdbFailed(f"GDB shows {found[0]!r}:\n{text[-6000:]}")
    return text


def run(
    command: Sequence[str],
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    statuses: tuple[int, ...] = (0,),
    seconds: float = SECONDS,
) -> str:
    """Return GDB's output on both streams; it must end in time, and with one of the given statuses."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=dict(env) if env is not None else environment(),
        cwd=cwd,
        start_new_session=True,
    )
    output = ""
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        # The debugged process dies with GDB, which requests this from the kernel.
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        raise GdbFailed(f"GDB takes more than {seconds:.0f} seconds:\n{output[-6000:]}") from None
    finally:
        Transcript(command).write(output)
    if process.returncode not in statuses:
        raise GdbFailed(f"GDB ends with status {process.returncode}:\n{output[-6000:]}")
    return check_output(output)


def batch(debugger: Debugger, *commands: str, executable: Path | None = None, plugin: Path | None = PLUGIN) -> str:
    """What GDB prints when it carries out commands one after the other; a command that fails does not end it."""
    arguments = [part for command in commands for part in ("-ex", command)]
    command = command_line(debugger, "-batch", *arguments, *([str(executable)] if executable else []), plugin=plugin)
    # 1: the last command failed.
    return run(command, statuses=(0, 1))


def call(
    debugger: Debugger,
    function: str,
    debug_files: bool = False,
    seconds: float = SECONDS,
    python_path: str = "",
    **arguments: Any,
) -> Any:
    """Call a function inside GDB, with the plugin loaded, and return its result; see :func:`call_and_output`."""
    return call_and_output(debugger, function, debug_files, seconds, python_path, **arguments)[0]


def call_and_output(
    debugger: Debugger,
    function: str,
    debug_files: bool = False,
    seconds: float = SECONDS,
    python_path: str = "",
    **arguments: Any,
) -> tuple[Any, str]:
    """Call a function inside GDB, with the plugin loaded, and return its result, and all that GDB printed.

    :param function: module below `tests.gdb.inside`, or with its packages, and name of the function in it.
    :param seconds: time limit.
    :param python_path: a folder with more packages for GDB's Python.
    :param arguments: values that JSON can express, like the result.
    """
    module, _, name = function.rpartition(".")
    with tempfile.TemporaryDirectory(prefix="sframe-gdb-") as folder:
        answer = Path(folder) / "answer.json"
        job = {
            "checkout": str(CHECKOUT),
            "module": module if "." in module else f"{_INSIDE}.{module}",
            "function": name,
            "arguments": arguments,
            "answer": str(answer),
        }
        described = Path(folder) / "job.json"
        described.write_text(json.dumps(job), encoding="utf-8")
        env = {**environment(), "SFRAME_TEST_JOB": str(described)}
        if python_path:
            env["PYTHONPATH"] = python_path
        output = run(command_line(debugger, "-batch", "-x", str(_ENTRY), debug_files=debug_files), env, seconds=seconds)
        if not answer.exists():
            raise GdbFailed(f"no answer from {function}:\n{output[-6000:]}")
        text = answer.read_text(encoding="utf-8")
    value = json.loads(text)
    _check_strings(value)
    return value, output


def _check_strings(value: Any) -> None:
    """Check each captured output in a result."""
    if isinstance(value, str):
        check_output(value)
    elif isinstance(value, dict):
        for part in value.values():
            _check_strings(part)
    elif isinstance(value, list):
        for part in value:
            _check_strings(part)
