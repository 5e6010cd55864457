"""Starts the debuggers of the Python environment at once.

The wheels' `gdb` and `lldb` are programs in Python, which replace themselves by the debugger.  That takes a third of
the processor time of a debugger's start, and a run of the tests starts more than a thousand.  A launcher does the same
without a Python.  It is made from what the wheel's program does, so that another release of the wheel has another one.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.hanging import HANG

CHECKOUT = Path(__file__).resolve().parents[1]
_MADE = CHECKOUT / ".cache" / "launchers"
_SOURCE = Path(__file__).with_name("launcher.c")
_OLD = "/old"
"""A value of variables that the wheel's program may keep, extend or replace."""
_USERS_WORD = "the user's word"
_ASK = """
import json, os, runpy, sys
def told(program, words, env):
    print(json.dumps([program, words, env]))
    sys.exit()
os.execve = told
own, word = sys.argv[1:]
sys.path[0] = os.path.dirname(own)
sys.argv = [own, word]
runpy.run_path(own, run_name="__main__")
"""


class _Start(NamedTuple):
    """How the wheel's program executes the debugger."""

    program: str
    words: list[str]
    """Those before the user's."""
    environment: dict[str, str]


class Variable(NamedTuple):
    """A variable that the wheel's program sets."""

    name: str
    before: str
    after: str
    takes_old: bool = False
    """The value that is there is put between the texts."""
    keeps_old: bool = False


def own(name: str) -> Path:
    """Return the path of a wheel's own program; the file may be missing."""
    return Path(sys.prefix, "bin", name)


@functools.cache
def launcher(name: str) -> Path:
    """Return a program that starts a debugger as the wheel's own program does; or that one, if none can be made."""
    program, compiler = own(name), shutil.which("gcc")
    start = _asked(program, {}) if compiler and program.exists() else None
    variables = _variables(program, start) if start is not None else None
    if compiler is None or start is None or variables is None:
        return program
    header = "\n".join(_header(start, variables))
    digest = hashlib.sha256(header.encode() + _SOURCE.read_bytes()).hexdigest()[:16]
    made = _MADE / digest / name
    if not made.exists():
        _compile(compiler, header, made)
    return made


def _asked(program: Path, environment: Mapping[str, str]) -> _Start | None:
    """Return what a wheel's program executes; ``None``: it works in another way."""
    done = subprocess.run(
        [sys.executable, "-c", _ASK, str(program), _USERS_WORD],
        env={"LC_ALL": "C.UTF-8", **environment},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    if done.returncode or not done.stdout:
        return None
    executed, words, variables = json.loads(done.stdout)
    return _Start(executed, words[:-1], variables) if words[-1:] == [_USERS_WORD] else None


def _variables(program: Path, start: _Start) -> list[Variable] | None:
    """Return the variables that a wheel's program sets; ``None``: it makes a value in another way."""
    names = [name for name in start.environment if name != "LC_ALL"]
    # Python itself would not start with this home.
    again = _asked(program, {name: _OLD for name in names if name != "PYTHONHOME"})
    if again is None or (again.program, again.words) != (start.program, start.words):
        return None
    found = [_variable(name, start.environment[name], again.environment[name]) for name in names]
    return None if None in found else [one for one in found if one is not None]


def _variable(name: str, value: str, with_old: str) -> Variable | None:
    """Return a variable, by its values without and with an old one."""
    if with_old == value:
        return Variable(name, value, "")
    if with_old == _OLD:
        return Variable(name, value, "", keeps_old=True)
    before, _, after = with_old.partition(f"{_OLD}:")
    return Variable(name, before, after, takes_old=True) if before + after == value else None


def _header(start: _Start, variables: list[Variable]) -> Iterator[str]:
    """Yield the lines of the header of `launcher.c`."""
    yield f"#define PROGRAM {_literal(start.program)}"
    yield f"#define WORDS {', '.join(map(_literal, start.words))}"
    rows = (f"{{{', '.join(map(_literal, one[:3]))}, {int(one.takes_old)}, {int(one.keeps_old)}}}" for one in variables)
    yield f"#define VARIABLES {', '.join(rows)}"


def _literal(text: str) -> str:
    """Return a text as a string literal of C."""
    return '"{}"'.format("".join(f"\\{byte:03o}" for byte in os.fsencode(text)))


def _compile(compiler: str, header: str, made: Path) -> None:
    """Compile a launcher.  It appears there whole, because several workers need it."""
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_MADE) as folder:
        described, finished = Path(folder, "launcher.h"), Path(folder, made.name)
        described.write_text(header, encoding="ascii")
        command = [compiler, "-O1", "-include", described, _SOURCE, "-o", finished]
        subprocess.run(list(map(str, command)), check=True, timeout=HANG)
        finished.replace(made)
