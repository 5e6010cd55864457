"""Probes an LLDB on this machine without the plugin: it starts a tiny program."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sframe_unwind.machine.finding import Finding
from sframe_unwind.machine.personality import lldb_settings
from sframe_unwind.machine.running import DEBUGGING, python_version, run, tiny_program

FRAMES, STARTS, PYTHON, VERSION = "takes frames of plugins", "starts programs", "Python", "version"
_NEWER = "install LLDB 23: pip install lldb-for-pwndbg"
_ASKED = (
    "import importlib.util, sys; "
    'has_base = importlib.util.find_spec("lldb.plugins.scripted_frame_provider") is not None; '
    'print("\\n@python", sys.version.split()[0], "@frames", has_base, "@end", sep="\\n")'
)


def probe(program: str, environment: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return the findings about an LLDB.

    :param program: its path.
    :param environment: the variables that it needs to find its Python module.
    """
    version = run([program, "--version"], environment)
    number = re.search(r"version (\d+[.\d]*)", version.output)
    if version.failure or not number:
        return (Finding("LLDB", VERSION, False, f"{program}: {version.failure or 'it tells no version'}", _NEWER),)
    return (
        Finding("LLDB", VERSION, True, f"{number[1]} ({program})"),
        *_python(program, environment),
        _starts(program, environment),
    )


def _python(program: str, environment: Mapping[str, str]) -> tuple[Finding, Finding]:
    """Return whether it has Python, and whether that has the base class of the plugin's provider of frames."""
    done = run([program, "--no-lldbinit", "--batch", "-o", f"script {_ASKED}"], environment)
    version = done.after("@python") or ""
    found = python_version(version)
    takes = done.after("@frames") == "True"
    return (
        Finding("LLDB", PYTHON, found, version or done.failure or "its Python module is not found", _NEWER),
        Finding("LLDB", FRAMES, takes, "yes" if takes else "no, LLDB 22 is the first that does", _NEWER),
    )


def _starts(program: str, environment: Mapping[str, str]) -> Finding:
    with tiny_program() as debugged:
        commands = ("process launch --stop-at-entry -o /dev/null -e /dev/null", "process status", "process kill")
        settings = lldb_settings()
        words = [word for line in settings for word in ("-O", line)]
        words += [word for line in commands for word in ("-o", line)]
        done = run([program, "--no-lldbinit", "--batch", *words, debugged], environment)
    works = re.search(r"^Process \d+ stopped", done.output, re.MULTILINE) is not None
    how = " ".join(["yes", *(f"after '{line}', as sframe-unwind lldb does" for line in settings)])
    return Finding("LLDB", STARTS, works, how if works else done.failure or _error(done.output), DEBUGGING)


def _error(output: str) -> str:
    """Return the last error that LLDB printed."""
    errors = re.findall(r"^error: (.*)", output, re.MULTILINE)
    return errors[-1] if errors else "LLDB printed no error"
