"""`sframe generate code` in GDB and LLDB, in a position-independent program without unwind data."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from lab.code.stops import building
from tests.gdb import driver as gdb
from tests.hanging import HANG
from tests.lldb import driver as lldb
from tests.lldb.debuggers import find as find_lldb
from tests.missing import absent, toolchain_needed

CHAIN = ("leaf", "inner", "middle", "varying", *["recurse"] * 5, "main")
ASKED = ("sframe bt", "sframe compare", "sframe explain", "up", "sframe explain", "sframe disassemble", "sframe status")
MISSING = "this needs the package pyvex"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("by_code")
    source = Path(building.__file__).with_name("indirect.c")
    with_cfi, without, stripped = (folder / name for name in ("with_cfi", "without", "stripped"))
    with toolchain_needed():
        flags = ["-O2", "-g0", "-fomit-frame-pointer", "-fno-stack-protector", "-pie", "-fPIE"]
        subprocess.run(["gcc", *flags, str(source), "-o", str(with_cfi)], check=True, timeout=HANG)
    removed = ["-R", ".eh_frame", "-R", ".eh_frame_hdr"]
    subprocess.run(["objcopy", *removed, str(with_cfi), str(without)], check=True, timeout=HANG)
    subprocess.run(["objcopy", "--strip-all", str(without), str(stripped)], check=True, timeout=HANG)
    return without


def in_gdb(program: Path, *commands: str) -> str:
    debugger = gdb.find("pypi")
    if debugger is None:
        absent(f"no GDB {gdb.MINIMUM} or later")
    return gdb.batch(debugger, *commands, executable=program)


def in_lldb(program: Path, *commands: str) -> str:
    words = [part for command in (lldb.IMPORT, *commands) for part in ("-o", command)]
    return lldb.batch(find_lldb("newest"), *words, str(program))


@pytest.fixture(scope="module", params=["GDB", "LLDB"])
def said(request: pytest.FixtureRequest, program: Path) -> str:
    """Return the output of a debugger in the program with symbols."""
    if request.param == "GDB":
        return in_gdb(program, "set sframe generate code", "break leaf", "run", "bt", *ASKED)
    return in_lldb(program, "sframe generate code", "breakpoint set -n leaf", "run", "bt", *ASKED)


def test_the_frames_are_by_the_code(said: str) -> None:
    shown = re.findall(r"^#\d+ +0x\w+ +(\w+) \(without\) +(.*\S)$", said, re.MULTILINE)
    assert shown[: len(CHAIN)] == [(name, "code") for name in CHAIN]


def test_explain_tells_what_the_rule_rests_on(said: str) -> None:
    first, second = re.findall(r"^code:  .*\n(.*)\n(.*)\nrule:  (.*)$", said, re.MULTILINE)[:2]
    assert first == ("       start: by its symbol", "       proved by its instructions", "CFA = rsp + 8")
    assert second[0] == first[0]
    assert second[1].startswith(first[1])
    assert second[2] != first[2]
    assert "return address = 0x" in said


def test_the_listing_has_the_rules_in_the_column_of_the_code(said: str) -> None:
    assert re.search(r"^ +SFrame: no row\n +DWARF CFI: no row$", said, re.MULTILINE)
    assert re.search(r"^ +[0-9a-f]+ +rsp\+8 +u +c-8 +\w+", said, re.MULTILINE)
    assert "the frame, by code:" in said


def test_compare_and_status(said: str) -> None:
    assert "mode auto, generate code" in said
    compared = re.findall(r"^#\d+ +0x.* code +(\w+)", said, re.MULTILINE)
    assert compared[: len(CHAIN)] == list(CHAIN)


def test_compare_counts_what_agrees(program: Path) -> None:
    """LLDB follows the instructions of functions with symbols, and so agrees."""
    said = in_lldb(program, "sframe generate code", "breakpoint set -n leaf", "run", "sframe compare 5")
    assert re.search(r"^5 frames agree, 0 of them by SFrame, 5 by the machine code", said, re.MULTILINE)


@pytest.mark.usefixtures("fixed_addresses")
def test_without_symbols(program: Path) -> None:
    settings = ("set sframe generate code", "set backtrace past-main on")
    said = in_gdb(program, *settings, "break leaf", "run", "sframe bt")
    wanted = _frames(said)
    leaf = wanted[0][0]
    said = in_gdb(
        program.with_name("stripped"), *settings, "starti", f"break *{leaf}", "continue", "sframe bt", "sframe explain"
    )
    assert _frames(said) == wanted
    assert [unwinder for _, unwinder in wanted[: len(CHAIN)]] == ["code"] * len(CHAIN)
    assert re.search(r"start: (called by|by the frame)", said)


def _frames(said: str) -> list[tuple[str, str]]:
    """Return the pc and the unwinder of each frame of ``sframe bt``."""
    return re.findall(r"^#\d+ +(0x\w{16})  .*  (\S+)$", said, re.MULTILINE)


def test_return_finds_all_registers(program: Path) -> None:
    said = in_gdb(
        program, "set sframe generate code", "set confirm off", "break inner", "run", "delete", "return", "bt 2"
    )
    assert "cannot be restored" not in said
    assert re.search(r"^#0  0x\w+ in middle \(\)\n#1  0x\w+ in varying \(\)", said, re.MULTILINE)


def test_the_plugin_sleeps_unless_it_is_asked(program: Path) -> None:
    unwinders = "python print('unwinders', [one.name for one in gdb.frame_unwinders])"
    said = in_gdb(
        program, "break leaf", "run", unwinders, "set sframe generate code", unwinders, "show sframe generate"
    )
    before, after = re.findall(r"^unwinders (.*)$", said, re.MULTILINE)
    assert "sframe" not in before
    assert "'sframe'" in after
    assert "What is generated for code without SFrame is 'code'." in said


def test_without_the_extra_one_line_tells(program: Path, tmp_path: Path) -> None:
    for package in ("pyvex", "capstone"):
        (tmp_path / f"{package}.py").write_text("raise ImportError('not here')\n")
    hidden = f"python import sys; sys.path.insert(0, {str(tmp_path)!r})"
    said = in_gdb(program, hidden, "set sframe generate code", "show sframe generate")
    assert re.search(rf"^sframe: {MISSING}.*not here", said, re.MULTILINE)
    assert "without SFrame is 'off'." in said
    hidden = f"script import sys; sys.path.insert(0, {str(tmp_path)!r})"
    words = [part for command in (lldb.IMPORT, hidden, "sframe generate code") for part in ("-o", command)]
    said = lldb.batch(find_lldb("newest"), *words, str(program), status=1)
    assert re.search(rf"error: sframe: {MISSING}.*not here", said)


def test_a_value_that_does_not_exist(program: Path) -> None:
    asked = ("sframe generate nonsense", "sframe generate")
    (failed, _, error), (_, shown, _) = lldb.answers(find_lldb("newest"), None, asked)
    assert not failed
    assert "'nonsense' is not known; Usage: sframe generate [off | on | code]" in error
    assert shown == "generate off\n"
    assert 'Undefined item: "nonsense"' in in_gdb(program, "set sframe generate nonsense")


def test_code_that_is_changed_in_memory_is_not_described(program: Path) -> None:
    changed = "set var *(unsigned char *)$pc = 0xcc"
    said = in_gdb(program, "break *leaf", "run", "delete", changed, "set sframe generate code", "sframe bt 1")
    assert re.search(r"^#0 .* leaf \(without\) +(gdb|-)$", said, re.MULTILINE)
