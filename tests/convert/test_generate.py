"""SFrame that the plugins generate for programs and libraries without it: `sframe generate on` in GDB and LLDB."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.convert.stepping import prepare, walk
from tests.abis.debuggers import DEBUGGERS, debugger
from tests.expectations import AGREEMENT
from tests.gdb.driver import batch
from tests.lldb import debuggers as lldbs
from tests.lldb.driver import IMPORT
from tests.lldb.driver import batch as lldb_batch

GENERATED = "sframe (generated)"
COMMANDS = ("sframe status", "sframe bt", "sframe compare", "sframe explain")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Path(prepare("amd64", tmp_path, convert=False)["program"]["executable"])


def check(shown: str, cache: Path) -> None:
    before, marker, after = shown.partition("generating now")
    assert marker
    assert "no module has usable SFrame data" in before
    assert GENERATED not in before
    status = [line.split() for line in after.splitlines() if " generated " in line and "amd64" in line]
    assert {"through_libc", "libc.so.6"} <= {line[0] for line in status}
    frames = [line for line in after.splitlines() if line.startswith("#") and GENERATED in line]
    assert len(frames) >= 10  # by_value, some of qsort, sort, main: twice
    assert "by_value" in frames[0]
    assert any("main" in line for line in frames)
    assert re.search(rf"^{AGREEMENT}$", after, re.MULTILINE)
    assert "table generated from the CFI of " in after
    assert len(list((cache / "sframe-unwind").iterdir())) >= 3


@pytest.mark.parametrize("name", DEBUGGERS)
def test_in_gdb(name: str, program: Path) -> None:
    commands = ("break by_value", "run", *COMMANDS[:3], "echo generating now\\n", "set sframe generate on", *COMMANDS)
    shown = batch(debugger(name, "amd64"), *commands, "show sframe generate", executable=program)
    check(shown, program.parent / "cache")
    assert "What is generated for code without SFrame is 'on'." in shown


@pytest.mark.parametrize("name", ["22.1", "newest"])
def test_in_lldb(name: str, program: Path) -> None:
    commands = [IMPORT, "b by_value", "run", *COMMANDS[:3]]
    commands += ["script print('generating now')", "sframe generate on", *COMMANDS, "sframe generate"]
    arguments = [argument for command in commands for argument in ("-o", command)]
    said = lldb_batch(lldbs.find(name), *arguments, str(program))
    shown = "\n".join(line for line in said.splitlines() if not line.startswith("(lldb)"))
    check(shown, program.parent / "cache")
    assert shown.rstrip().endswith("generate on")


@pytest.mark.parametrize("generate", [False, True])
def test_through_the_c_library_by_sframe_alone(generate: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either the C library is a converted copy, or it is the system's own and the plugin generates its SFrame."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = walk("amd64", 120, generate)
    assert (found["count"], found["different"], found["others"]) == (120, 0, {})
    assert found["in library"] > 30
