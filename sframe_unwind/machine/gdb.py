"""Probes a GDB on this machine without the plugin: it debugs a tiny program."""

from __future__ import annotations

import functools
import os
import platform
import re

from sframe_unwind.machine.finding import Finding
from sframe_unwind.machine.running import DEBUGGING, Run, python_version, run, tiny_program

OLDEST = 13
"""The oldest version that the plugin runs in."""
CALLS, WRITES, STARTS, PYTHON, VERSION = "calls functions", "writes registers", "starts programs", "Python", "version"
_NEWER = "install GDB 18: pip install gdb-for-pwndbg"

# On a processor with AMX, GDB 13 can write the general registers and no others, since its buffer is too small for the
# extended state.  A call of a function restores all registers.
_WRITTEN = {"x86_64": "$xmm0.uint128 ^= 1", "aarch64": "$v0.q.u[0] ^= 1", "s390x": "$f0 += 1"}
"""Changes a register of each machine that is not a general one: GDB does not write a value that is there already."""
_VALUE = re.compile(r"^\$\d+ = ", re.MULTILINE)


@functools.cache
def probe(program: str) -> tuple[Finding, ...]:
    """Return the findings about a GDB.

    :param program: its path.
    """
    version = run([program, "--version"], os.environ)
    number = re.search(r"(\d+)\.\d+\S*$", version.output.partition("\n")[0])
    if version.failure or not number:
        return (Finding("GDB", VERSION, False, f"{program}: {version.failure or 'it tells no version'}", _NEWER),)
    is_new = int(number[1]) >= OLDEST
    return (
        Finding("GDB", VERSION, is_new, f"{number[0]} ({program})", "" if is_new else _NEWER),
        *_session(program),
    )


def _session(program: str) -> tuple[Finding, ...]:
    written = _WRITTEN.get(platform.machine(), "$sp += 16")
    with tiny_program() as debugged:
        commands = (
            *("echo \\n@python\\n", "python import sys; print(sys.version.split()[0])"),
            *("echo \\n@start\\n", "break exit", "run", "echo \\n", "info program"),
            *("echo \\n@call\\n", "print (int)getpid()"),
            *("echo \\n@write\\n", f"print {written}"),
            *("echo \\n@end\\n", "kill"),
        )
        settings = ("set confirm off", "set breakpoint pending on", "set style enabled off", "set width 0")
        words = [word for line in settings for word in ("-iex", line)]
        words += [word for line in commands for word in ("-ex", line)]
        done = run([program, "-nx", "-q", "-batch", *words, debugged], os.environ)
    version = _last_line(done.after("@python") or "")
    python = Finding("GDB", PYTHON, python_version(version), version or done.failure, _NEWER)
    start = done.after("@start") or ""
    if "It stopped at breakpoint" not in start:
        unknown = (Finding("GDB", name, None, "no program was started") for name in (CALLS, WRITES))
        return (python, Finding("GDB", STARTS, False, _reason(done, start), DEBUGGING), *unknown)
    return (
        python,
        Finding("GDB", STARTS, True, "yes"),
        _evaluated(CALLS, done, "@call"),
        _evaluated(WRITES, done, "@write"),
    )


def _evaluated(name: str, done: Run, mark: str) -> Finding:
    """Return whether GDB printed the value of an expression."""
    text = done.after(mark) or ""
    works = bool(_VALUE.search(text))
    return Finding("GDB", name, works, "yes" if works else _reason(done, text), "" if works else _NEWER)


def _reason(done: Run, text: str) -> str:
    """Return the last line of GDB's output at a command, which is its error, or why GDB ended."""
    return done.failure or _last_line(text) or "GDB printed nothing"


def _last_line(text: str) -> str:
    return next((line.strip().rstrip(".") for line in reversed(text.splitlines()) if line.strip()), "")
