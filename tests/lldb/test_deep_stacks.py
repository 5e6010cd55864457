"""Stacks of thousands of frames, some of which only SFrame describes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.gdb.compiling import tools_for
from tests.hanging import HANG
from tests.lldb.debuggers import PROVIDING, find
from tests.lldb.driver import IMPORT, batch, call

SOURCE = Path(__file__).parent / "deep.c"
SHALLOW, DEEP = 1_000, 20_000

CFI, SFRAME, NEITHER = "cfi", "sframe", "neither"
PROGRAMS = {
    "recursion": (SFRAME, CFI),
    "main": (CFI, SFRAME),
    "both": (SFRAME, SFRAME),
    "below code without data": (SFRAME, NEITHER),
}
"""What describes the file of the recursion, and that of its caller; with CFI, there is SFrame, too."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build the programs, and one that is stripped."""
    folder = tmp_path_factory.mktemp("deep")
    objects = {
        (defines, data): _object(folder / f"{bool(defines)}-{data}.o", defines, data)
        for defines in ("", "-DRECURSION")
        for data in (CFI, SFRAME, NEITHER)
    }
    made = {}
    for name, (recursion, main) in PROGRAMS.items():
        made[name] = folder / name
        parts = objects["-DRECURSION", recursion], objects["", main]
        subprocess.run(["gcc", f"-B{tools_for(3)}/", *map(str, parts), "-o", str(made[name])], check=True, timeout=HANG)
    made["stripped"] = folder / "stripped"
    subprocess.run(["strip", "-o", str(made["stripped"]), str(made["both"])], check=True, timeout=HANG)
    return made


def _object(path: Path, defines: str, data: str) -> Path:
    """Compile the source with unwind data of one of the kinds."""
    text = path.with_suffix(".s")
    compiler = ["gcc", "-g", "-O1", *filter(None, [defines])]
    subprocess.run([*compiler, "-S", str(SOURCE), "-o", str(text)], check=True, timeout=HANG)
    code = text.read_text(encoding="utf-8")
    if data == SFRAME:
        code = ".cfi_sections .sframe\n" + code
    elif data == NEITHER:
        code = re.sub(r"\n\t\.cfi_.*", "", code)
    text.write_text(code, encoding="utf-8")
    assembler = ["gcc", f"-B{tools_for(3)}/", "-Wa,--gsframe", "-c", str(text), "-o", str(path)]
    subprocess.run(assembler, check=True, timeout=HANG)
    return path


def stopped(path: Path, depth: int) -> dict[str, Any]:
    """Return the description of a program that stops at the end of its recursion."""
    return {
        "executable": str(path),
        "arguments": [str(depth)],
        "emulator": [],
        "sysroot": "",
        "place": "reached",
        "signals": [],
    }


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_to_lldb_do_not_grow_with_the_depth(lldb: str, name: str, programs: dict[str, Path]) -> None:
    """LLDB's stack is the same: it follows the instructions of functions without CFI.

    Each frame that the plugin reads makes LLDB unwind it, and a frame pointer makes LLDB search all frames inside it.
    """
    shallow, deep = (
        call(find(lldb), "frames", "calls_for_deep_stack", program=stopped(programs[name], depth))
        for depth in (SHALLOW, DEEP)
    )
    assert len(deep["shown"]) > DEEP
    assert deep["shown"] == deep["alone"]
    assert deep["calls"] <= shallow["calls"] + 200


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.parametrize("name", [name for name, data in PROGRAMS.items() if NEITHER not in data])
def test_the_start_of_a_program_is_decided_by_the_rules(lldb: str, name: str, programs: dict[str, Path]) -> None:
    """LLDB stops in the dynamic linker, whose ``_start`` has no unwind data; what compares frames is not loaded."""
    program = stopped(programs[name], 10)
    said = call(find(lldb), "frames", "stacks_that_rules_did_not_decide", program=program)
    assert len(said["shown"]) > 3
    assert said["shown"] == said["alone"]
    assert said["compared"] == 0
    assert said["loaded"] == []


@pytest.mark.parametrize("lldb", PROVIDING)
def test_frames_that_only_sframe_has(lldb: str, programs: dict[str, Path]) -> None:
    """LLDB alone does not find the callers in a stripped program; the whole stack is that of the program before."""
    whole = _functions(find(lldb), programs["both"])
    assert _functions(find(lldb), programs["stripped"]) == whole
    assert len(whole) > SHALLOW


@pytest.mark.parametrize("lldb", PROVIDING)
def test_frames_of_a_recursion_that_are_added_at_once(lldb: str, programs: dict[str, Path], tmp_path: Path) -> None:
    """They are those that a walk over each of them gives; LLDB alone has none of them."""
    path = tmp_path / "stripped"
    subprocess.run(["strip", "-K", "reached", "-o", str(path), str(programs["both"])], check=True, timeout=HANG)
    said = call(find(lldb), "frames", "planned_at_once", program=stopped(path, SHALLOW))
    assert said["skips"]
    assert said["at once"] == said["walked"]
    assert said["same walk"]
    assert len(said["walked"]) > SHALLOW


def _functions(lldb: str, path: Path) -> list[str]:
    """Return the offsets in their pages of the pcs of the stack at the end of the recursion.

    Where programs start at random addresses, these stay.
    """
    said = batch(
        lldb,
        "-O",
        IMPORT,
        "-o",
        f"breakpoint set -s {path.name} -a {_reached(path)}",
        "-o",
        "run",
        "-o",
        "bt",
        str(path),
        "--",
        str(SHALLOW),
    )
    return re.findall(r"frame #\d+: 0x[0-9a-f]+([0-9a-f]{3}) ", said.partition("(lldb) bt")[2])


def _reached(path: Path) -> str:
    """Return the address of the innermost function in the files of the programs, one of which is stripped."""
    symbols = subprocess.run(
        ["nm", str(path.parent / "both")], capture_output=True, text=True, timeout=HANG, check=True
    )
    address = re.search(r"([0-9a-f]+) T reached", symbols.stdout)
    assert address is not None
    return f"0x{address[1]}"


COUNTING = """
from lldb_plugin.frames.scripted_frame import FrameMaker
make, made = FrameMaker.make, []
def counted(*arguments):
    made.append(arguments)
    return make(*arguments)
FrameMaker.make = counted
"""


@pytest.mark.parametrize("setting", ["mode auto", "strict on"])
def test_frames_that_are_not_shown_are_not_made(setting: str, programs: dict[str, Path]) -> None:
    """Making all frames of a stack overflow takes some seconds; if LLDB has as many of its own, `bt` would take longer.

    LLDB 22 takes all of them at once: see `frame_ids`.
    """
    is_strict = setting == "strict on"
    path = programs["both" if is_strict else "stripped"]
    said = batch(
        find("newest"),
        *("-O", IMPORT, "-O", f"sframe {setting}", "-O", f"script exec({COUNTING!r})"),
        *("-o", f"breakpoint set -a {_reached(path)} -s {path.name}"),
        *("-o", f"process launch -o /dev/null -- {DEEP}", "-o", "bt 3", "-o", "script print('made', len(made))"),
        *("-o", "script print('frames', lldb.thread.GetNumFrames())"),
        str(path),
    )
    counts = {word: int(number) for word, number in re.findall(r"^(made|frames) (\d+)$", said, re.MULTILINE)}
    assert counts["frames"] > DEEP
    assert counts["made"] > DEEP if is_strict else counts["made"] < SHALLOW


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.parametrize("name", ["both", "stripped"])
def test_stack_overflow(lldb: str, name: str, programs: dict[str, Path]) -> None:
    """The crash is shown, and so are its frames, which LLDB alone does not have in the stripped program.

    LLDB 22 has to take all frames at once, so it gets fewer of those that are not its own.
    """
    path = programs[name]
    said = batch(
        find(lldb),
        *("-O", IMPORT, "-o", "process launch -o /dev/null -- 1 endless"),
        *("-k", "bt 3", "-k", "script print('frames', lldb.thread.GetNumFrames())", "-k", "kill"),
        str(path),
        status=None,
    )
    assert re.search(r"stop reason = signal SIGSEGV", said), said
    innermost = said.partition("(lldb) bt 3")[2]
    assert len(set(re.findall(r"frame #[12]: (0x[0-9a-f]+) ", innermost))) == 1, said
    count = re.search(r"frames (\d+)", said)
    assert count is not None, said
    is_cut = (lldb, name) == ("22.1", "stripped")
    assert int(count[1]) == 50_000 if is_cut else int(count[1]) > 100_000
    assert ("bt ends after 50,000 frames, 'sframe bt' does not" in said) is is_cut
