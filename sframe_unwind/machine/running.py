"""Runs a debugger on a tiny program, with a time limit."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sframe_unwind.named_tuple import NamedTuple

SECONDS = 180
"""Time limit of a probe in seconds; only a debugger that hangs takes so long."""

DEBUGGING = "in a container: docker run --cap-add SYS_PTRACE --security-opt seccomp=unconfined"
"""The remedy where a debugger cannot start a program."""
OLDEST_PYTHON = (3, 9)

_SOURCE = "int main(void) { return 0; }\n"
_EXISTING = ("/bin/true", "/usr/bin/true")


class Run(NamedTuple):
    """What a debugger printed, and why it did not end well."""

    output: str
    failure: str
    """Empty: it ended well."""

    def after(self, mark: str) -> str | None:
        """Return the output between a line and the next line that begins with ``@``; ``None``: there is none."""
        _, found, rest = f"\n{self.output}\n".partition(f"\n{mark}\n")
        return rest.partition("\n@")[0].strip() if found else None


@contextlib.contextmanager
def tiny_program() -> Iterator[str]:
    """Yield the path of a program that ends at once: a compiled one, or without a compiler one of this machine.

    The program calls ``exit`` of the C library.
    """
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    with tempfile.TemporaryDirectory(prefix="sframe-unwind-") as folder:
        program = Path(folder) / "tiny"
        if compiler:
            run([compiler, "-g", "-x", "c", "-o", str(program), "-"], os.environ, _SOURCE)
        existing = next(filter(os.path.exists, _EXISTING), _EXISTING[0])
        yield str(program) if program.exists() else existing


def run(command: Sequence[str], environment: Mapping[str, str], typed: str = "") -> Run:
    """Run a program until it ends or the time limit is over; then end it and what it started.

    :param typed: its standard input.
    """
    try:
        process = subprocess.Popen(
            command,
            env={**environment, "LC_ALL": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1", "DEBUGINFOD_URLS": ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return Run("", f"cannot start: {error.strerror or error}")
    try:
        output, _ = process.communicate(typed, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        _end(process.pid)
        return Run(process.communicate()[0], f"did not end within {SECONDS} seconds")
    finally:
        _end(process.pid)
    return Run(output, f"ended by {signal.Signals(-process.returncode).name}" if process.returncode < 0 else "")


def python_version(text: str) -> bool:
    """Return whether a text is the version of a Python in which the plugins run."""
    found = re.match(r"(\d+)\.(\d+)", text)
    return found is not None and (int(found[1]), int(found[2])) >= OLDEST_PYTHON


def _end(group: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, signal.SIGKILL)
