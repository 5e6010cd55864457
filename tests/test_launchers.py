"""The launchers start the same program as the wheels' own, with the same words, environment and ignored signals."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import launchers
from tests.hanging import HANG
from tests.launchers import Variable, launcher, own
from tests.missing import absent

SHOW = (
    "import json, os; fields = dict(line.split(':', 1) for line in open('/proc/self/status')); "
    "print('@' + json.dumps([open('/proc/self/cmdline').read().split(chr(0)), open('/proc/self/environ').read(), "
    "os.readlink('/proc/self/exe'), fields['SigIgn'], fields['Umask']]))"
)
"""Prints, in the Python of a debugger, how that was started."""
TYPED = {
    "gdb": ["-nx", "-batch", "-ex", f"python {SHOW}", "--args", "/bin/true", "two words", "", "ü"],
    "lldb": ["--no-lldbinit", "--batch", "-o", f"script {SHOW}", "--", "/bin/true", "two words", "", "ü"],
}
ENVIRONMENTS: list[dict[str, str]] = [
    {},
    {"PYTHONPATH": "/first:/second"},
    {"PYTHONPATH": "", "FIRST": "1", "PYTHONNOUSERSITE": "0", "LAST": "ü"},
]


@pytest.fixture(params=list(TYPED))
def name(request: pytest.FixtureRequest) -> str:
    """Return the name of a debugger for which a launcher can be made."""
    if not own(request.param).exists() or shutil.which("gcc") is None:
        absent(f"{own(request.param)} or gcc is not there: the launcher stays untested")
    return str(request.param)


def shown(program: Path, name: str, environment: Mapping[str, str]) -> Any:
    """Return how a debugger finds itself started."""
    env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "HOME": "/nonexistent", **environment}
    done = subprocess.run(
        [str(program), *TYPED[name]],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=HANG,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(b"@")]
    assert len(lines) == 1, done
    return json.loads(lines[0][1:])


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=["usual", "with a path", "with others"])
def test_a_debugger_is_started_in_the_same_way(name: str, environment: dict[str, str]) -> None:
    assert launcher(name) != own(name)
    assert shown(launcher(name), name, environment) == shown(own(name), name, environment)


@pytest.mark.parametrize("name", ["lldb"], indirect=True)
def test_the_server_of_lldb_is_the_users_if_there_is_one(name: str) -> None:
    environment = {"LLDB_DEBUGSERVER_PATH": "/some/server"}
    _, variables, *_ = told = shown(launcher(name), name, environment)
    assert "LLDB_DEBUGSERVER_PATH=/some/server" in variables.split("\0")
    assert told == shown(own(name), name, environment)


@pytest.mark.parametrize(
    ("value", "with_old", "expected"),
    [
        ("1", "1", Variable("name", "1", "")),
        ("a:b", "a:/old:b", Variable("name", "a:", "b", takes_old=True)),
        ("a", "/old", Variable("name", "a", "", keeps_old=True)),
        ("a", "a,/old", None),
    ],
)
def test_ways_to_set_a_variable(value: str, with_old: str, expected: Variable | None) -> None:
    assert launchers._variable("name", value, with_old) == expected


@pytest.mark.parametrize("text", ["import sys\nsys.exit(0)\n", "import os\nos.execv('/bin/true', ['true'])\n", "1 / 0"])
def test_a_program_that_works_in_another_way_is_started_itself(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "gdb"
    program.write_text(text, encoding="utf-8")
    monkeypatch.setattr(launchers, "own", lambda _: program)
    assert launchers.launcher.__wrapped__("gdb") == program
