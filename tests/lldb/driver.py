"""Runs an LLDB with a time limit, and checks that it leaves no process running."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sframe_unwind.cli import debugger
from sframe_unwind.machine.personality import lldb_settings
from tests.expectations import AGREEMENT
from tests.hanging import HANG
from tests.lldb.debuggers import CHECKOUT, PLUGIN
from tests.transcripts import Transcript
from tools.debuginfod import NO_SERVER

ENTRY = Path(__file__).parent / "inside" / "entry.py"
SECONDS = HANG
"""Time limit for a run, in seconds."""

IMPORT = f'command script import "{PLUGIN}"'
START = tuple(word for line in lldb_settings() for word in ("-O", line))
"""The arguments without which LLDB starts no program on this machine; mostly none."""


class CrashError(AssertionError):
    """A signal ended LLDB."""


class HangError(AssertionError):
    """LLDB did not end in time."""


def environment(lldb: str, **more: str) -> dict[str, str]:
    """Return the environment for an LLDB: no user's settings, no network.

    The one of Debian 12 finds its own Python module, and the packages that this needs, as in `sframe-unwind lldb`:
    whichever Python is the first of PATH.
    """
    found = debugger.environment(debugger.LLDB, lldb)
    return {**found, "DEBUGINFOD_URLS": NO_SERVER, "LC_ALL": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1", **more}


def batch(
    lldb: str,
    *arguments: str,
    seconds: float = SECONDS,
    init: bool = False,
    status: int | None = 0,
    python_path: str = "",
    **more: str,
) -> str:
    """Return LLDB's output on both streams; it must not hang, crash, or print a Python traceback.

    `python_path`: a folder with more packages for LLDB's Python.  `init`: read the settings in the home folder, which
    `more` names (``HOME=...``).
    """
    command = [lldb, *([] if init else ["--no-lldbinit"]), "--batch", *START, *arguments]
    process = subprocess.Popen(
        command,
        env=environment(lldb, **({**more, "PYTHONPATH": python_path} if python_path else more)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    said = ""
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        where = _threads(process.pid)
        end(process.pid)
        said = process.communicate()[0] + where
        raise HangError(f"LLDB hangs: {' '.join(command)}\n{said[-3000:]}") from None
    finally:
        end(process.pid)
        Transcript(command).write(said)
    if process.returncode < 0:
        raise CrashError(f"{signal.Signals(-process.returncode).name}\n{said[-4000:]}")
    check(said)
    assert status is None or process.returncode == status, f"exit status {process.returncode}\n{said[-3000:]}"
    return said


def _threads(process: int) -> str:
    """Return the stacks of all threads of an LLDB that hangs, as GDB shows them."""
    command = ["gdb", "-nx", "-batch", "-p", str(process), "-ex", "thread apply all bt 40"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False).stdout
    return ""


def check(said: str) -> None:
    """Check that the output has no Python internals, and no crash."""
    for word in ("Traceback", "internal error", "submit a bug report", "LLDB is busy"):
        assert word not in said, said[-4000:]


def agrees(verdict: str) -> bool:
    """Return whether all frames with a caller agree according to the last line of `sframe compare`."""
    return re.fullmatch(AGREEMENT, verdict) is not None


def end(group: int) -> None:
    """End the rest of a run: LLDB's process group, which includes its debug server and the program."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def call(
    lldb: str,
    module: str,
    function: str,
    *,
    plugin: bool = True,
    seconds: float = SECONDS,
    python_path: str = "",
    **arguments: Any,
) -> Any:
    """Return the result of a function of `tests.lldb.inside` in LLDB, with the plugin loaded before.

    `python_path`: a folder with more packages for LLDB's Python.
    """
    with tempfile.TemporaryDirectory() as folder:
        job, answer = Path(folder) / "job.json", Path(folder) / "answer.json"
        described = {
            "checkout": str(CHECKOUT),
            "module": f"tests.lldb.inside.{module}",
            "function": function,
            "arguments": arguments,
            "answer": str(answer),
        }
        job.write_text(json.dumps(described), encoding="utf-8")
        load: Sequence[str] = ("-o", IMPORT) if plugin else ()
        entry = f'command script import "{ENTRY}"'
        words = (*load, "-o", entry)
        said = batch(lldb, *words, seconds=seconds, python_path=python_path, SFRAME_TEST_JOB=str(job))
        assert answer.exists(), said[-4000:]
        return json.loads(answer.read_text(encoding="utf-8"))


def stacks(said: str) -> list[list[str]]:
    """Return the pcs of each backtrace, without the line of the stop, which LLDB 23 can print after it."""
    found: list[list[str]] = []
    for part in said.split("(lldb) bt\n")[1:]:
        found.append([])
        for level, pc in re.findall(r"frame #(\d+): (0x[0-9a-f]+) ", part):
            if int(level) == len(found[-1]):
                found[-1].append(pc)
    return found


def answers(
    lldb: str, program: dict[str, Any] | None, commands: Sequence[str], varying: str = ""
) -> list[tuple[bool, str, str]]:
    """Return of each command whether it succeeded, its output, and its error.

    :param program: where it is stopped first; ``None``: there is none.
    :param varying: a pattern of what differs from run to run, which becomes ``N`` in the output; empty: nothing does.
    """
    said = call(lldb, "commands", "run", commands=commands, program=program)
    return [(ok, re.sub(varying, "N", output) if varying else output, error) for ok, output, error in said]
