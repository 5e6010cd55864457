"""`sframe explain` and `sframe compare` for rows that the machine code proves, and for one that it does not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import schemas
from tests.gdb import driver as gdb
from tests.hanging import HANG
from tests.lldb import driver as lldb
from tests.lldb.debuggers import find as find_lldb
from tests.missing import absent, toolchain_needed
from tests.samples.build import COMMON_FLAGS, toolchain

SOURCE = Path(__file__).parent / "debugged" / "forgetful.c"
PLACES = ("right", "forgetful", "huge")
ASKED = ("sframe compare", "sframe compare --json", "up", "sframe explain", "sframe explain")
WRONG = r"cfa: the code has CFA = rsp \+ 16 since `push %rbx` at 0x\w+; SFrame and DWARF say rsp \+ 8$"
HOW_TO_GET_IT = "code:  not checked: this needs the package pyvex: pip install pyvex 'bitstring<5' capstone"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program of `forgetful.c`."""
    with toolchain_needed():
        tools = toolchain("amd64", 3)
    executable: Path = tmp_path_factory.mktemp("debugged") / "forgetful"
    # main finds its frame by %rbp, so the wrong CFA of its callee does no further harm.
    flags = [*COMMON_FLAGS, "-O2", "-fno-omit-frame-pointer", f"-B{tools}/"]
    subprocess.run(["gcc", *flags, str(SOURCE), "-o", str(executable)], check=True, timeout=HANG)
    return executable


def in_gdb(name: str, program: Path) -> str:
    debugger = gdb.find(name)
    if debugger is None:
        absent(f"no GDB {gdb.MINIMUM} or later ({name})")
    asked = [command for _ in PLACES for command in (*ASKED, "continue")]
    return gdb.batch(debugger, "break stop_here", "run", *asked, executable=program)


def in_lldb(name: str, program: Path) -> str:
    asked = [command for _ in PLACES for command in (*ASKED, "continue")]
    commands = [lldb.IMPORT, "breakpoint set -n stop_here", "run", *asked]
    return lldb.batch(find_lldb(name), *(part for command in commands for part in ("-o", command)), str(program))


@pytest.fixture(scope="module", params=["GDB", "LLDB"])
def said(request: pytest.FixtureRequest, program: Path) -> str:
    """Return the output of a debugger whose Python is the one of this environment, so it has the extra."""
    return in_gdb("pypi", program) if request.param == "GDB" else in_lldb("newest", program)


def threads(said: str) -> Iterator[list[dict[str, object]]]:
    for line in said.splitlines():
        if line.startswith('{"threads"'):
            schemas.check("compare", line)
            yield json.loads(line)["threads"][0]["frames"]


def test_explain_says_what_the_code_makes_of_the_row(said: str) -> None:
    lines = [line for line in said.splitlines() if line.startswith("code:  ")]
    assert lines[:2] == ["code:  proved"] * 2
    assert all(re.fullmatch(f"code:  wrong: {WRONG}", line) for line in lines[2:4])
    assert lines[4:] == ["code:  unknown: the function has 70,006 bytes, which takes too long"] * 2


def test_compare_marks_the_frame_that_both_have_wrong(said: str) -> None:
    assert [line.split()[-4] for line in said.splitlines() if line.endswith(" <-- the code")] == ["forgetful"]
    verdicts = re.findall(r"^\d+ frames agree.*", said, re.MULTILINE)
    assert len(verdicts) == len(PLACES)
    assert re.search(f"; wrong by the code at frame 1: {WRONG}", verdicts[1])
    assert not any("wrong" in verdict for verdict in (verdicts[0], verdicts[2]))


def test_json_has_the_verdict_on_each_frame(said: str) -> None:
    found = list(threads(said))
    assert [frames[1]["code"] for frames in found] == ["proved", "wrong", "unknown"]
    assert all(frames[0]["code"] == "proved" and frames[1]["agrees"] for frames in found)


@pytest.mark.parametrize("debugger", ["GDB", "LLDB"])
def test_without_the_extra_it_is_said_once_how_to_get_it(debugger: str, program: Path) -> None:
    """The system's GDB and LLDB 22.1 have other Pythons, without the extra."""
    text = in_gdb("system", program) if debugger == "GDB" else in_lldb("22.1", program)
    lines = [line for line in text.splitlines() if line.startswith("code:")]
    assert len(lines) == 1
    assert lines[0].startswith(HOW_TO_GET_IT)
    assert all(frame["code"] is None for frames in threads(text) for frame in frames)
    assert " <-- " not in text


@pytest.mark.parametrize("name", ["pypi", "system"])
def test_extra_that_cannot_be_loaded(name: str, program: Path, tmp_path: Path) -> None:
    """The commands work without it: a GDB with another Python can have another version of cffi's library."""
    debugger = gdb.find(name)
    if debugger is None:
        absent(f"no GDB {gdb.MINIMUM} or later ({name})")
    for package in ("pyvex", "capstone"):
        (tmp_path / f"{package}.py").write_text("raise Exception('Version mismatch')\n")
    first = f"python import sys; sys.path.insert(0, {str(tmp_path)!r})"
    text = gdb.batch(debugger, first, "break stop_here", "run", *ASKED, executable=program)
    assert re.search(r"^\d+ frames agree", text, re.MULTILINE)
    assert re.findall(r"^code:.*", text, re.MULTILINE) == [
        "code:  not checked: this needs the package pyvex, which cannot be loaded: Version mismatch"
    ]


@pytest.mark.parametrize("module", ["sframe_unwind.debugger.output", "sframe_unwind.debugger.code_judge"])
def test_what_plugins_import_loads_nothing_of_it(module: str) -> None:
    code = f"import sys, {module}; print([name for name in sys.modules if name.startswith('sframe_unwind.code')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANG)
    assert done.stdout.strip() == "[]"
