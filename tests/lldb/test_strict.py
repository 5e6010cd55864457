"""SFrame's own frames in LLDB, compared with LLDB's frames of the same stack."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.expectations import STOPS
from tests.gdb.compiling import tools_for
from tests.lldb.debuggers import PROVIDING, find, takes_registers
from tests.lldb.driver import IMPORT, batch, call
from tests.lldb.programs import program
from tests.pairing import paired
from tests.samples.build import build

LEAF = next(stop for stop in STOPS if stop.name == "leaf")
INLINED = Path(__file__).parent / "inlined.cc"
START = ("-O", IMPORT, "-o", "breakpoint set -n sample_stop", "-o", "process launch -o /dev/null")


def run(lldb: str, sample: str, *commands: str, variant: str = "O0") -> str:
    """Return LLDB's output for commands at the place where a sample stops."""
    typed = [part for command in commands for part in ("-o", command)]
    return batch(lldb, *START, *typed, str(build(sample, variant=variant)))


def frames_of(lldb: str, described: dict[str, Any]) -> dict[str, Any]:
    """Return the frames of a program at its stop, native and strict."""
    found: dict[str, Any] = call(lldb, "frames", "native_and_strict", program=described)
    return found


@pytest.fixture(scope="module")
def inlined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program of `inlined.cc`."""
    path: Path = tmp_path_factory.mktemp("inlined") / "inlined"
    command = ["g++", f"-B{tools_for(3)}/", "-g", "-O2", "-std=c++17", "-Wa,--gsframe", str(INLINED), "-o", str(path)]
    subprocess.run(command, check=True, timeout=60)
    return path


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.parametrize("variant", ["O0", "O2"])
def test_same_stack_and_values(lldb: str, variant: str) -> None:
    """Variables that SFrame's registers locate have the values of LLDB's frames."""
    native, strict = frames_of(find(lldb), program(LEAF, variant=variant)).values()
    assert [frame["pc"] for frame in strict] == [frame["pc"] for frame in native]
    assert [frame["name"] for frame in strict] == [frame["name"] for frame in native]
    assert [frame["line"] for frame in strict] == [frame["line"] for frame in native]
    assert not any(frame["synthetic"] for frame in native)
    assert [frame["synthetic"] for frame in strict][:4] == [False, True, True, True]
    compared = 0
    for ours, theirs in paired(strict[1:4], native[1:4]):
        assert ours["variables"].items() <= theirs["variables"].items()
        compared += len(ours["variables"])
    assert compared or variant != "O0"
    if variant == "O0":  # all are in memory
        assert [frame["variables"] for frame in strict[:4]] == [frame["variables"] for frame in native[:4]]


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.parametrize("name", ["recursion", "callback"])
def test_frames_that_sframe_covers_are_not_read_from_lldb(lldb: str, name: str) -> None:
    """Those that `sframe compare` needs are read then, although LLDB shows SFrame's."""
    stop = next(stop for stop in STOPS if stop.name == name)
    found = call(find(lldb), "frames", "reads_of_native_frames", program=program(stop, variant="O0"))
    frames = found["compared"]["threads"][0]["frames"]
    others = [frame for frame in frames if frame["unwinder"] != "sframe"]
    assert found["read"] <= 5 + 4 * len(others)  # each of them twice, its caller and the next one
    assert 10 <= len(frames) <= found["frames"]
    assert sum(frame["agrees"] is True for frame in frames) == len(frames) - 1  # all but the outermost one
    assert found["compared"] == found["alone"]


@pytest.mark.parametrize("lldb", PROVIDING)
def test_steps_that_return_in_a_recursion(lldb: str) -> None:
    """LLDB 22 then gave each script the contents of frame 1 for frame 2 too, if both were SFrame's."""
    stop = next(stop for stop in STOPS if stop.name == "recursion")
    described, steps = program(stop, variant="O0"), 16
    alone, strict = (
        call(find(lldb), "frames", "at_each_step", program=described, setting=setting, steps=steps)
        for setting in ("sframe mode off", "sframe strict on")
    )
    assert len({len(frames) for frames in alone}) >= 4  # so many returns
    for native, own in paired(alone, strict):
        assert [frame["pc"] for frame in own] == [frame["pc"] for frame in native]
        assert sum(frame["synthetic"] for frame in own) >= 8
        for ours, theirs in paired(own, native):
            values = [frame["variables"].get("level") for frame in (ours, theirs)]  # `result` may not be set yet
            assert values[0] == values[1], ours["name"]
            assert values[0] is not None or ours["name"] not in ("descend", "descend_wide")


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.parametrize("arguments", [[], ["in a method"]])
def test_inlined_and_tail_called_functions(lldb: str, arguments: list[str], inlined: Path) -> None:
    """Each is a frame with the pc, the line and the variables of LLDB's own stack."""
    described = {**program(LEAF), "executable": str(inlined), "arguments": arguments, "place": "reached"}
    native, strict = frames_of(find(lldb), described).values()
    for name in ("pc", "name", "line", "inlined", "artificial"):
        assert [frame[name] for frame in strict] == [frame[name] for frame in native], name
    last = [frame["name"] for frame in native].index("main")
    assert sum(frame["inlined"] for frame in native[:last]) >= 2
    assert [frame["name"] for frame in native if frame["artificial"]] == ["passed_on(int)"]
    own = [frame["synthetic"] != frame["artificial"] for frame in strict[: last + 1]]
    assert own == [False] + [True] * last
    values = 0
    for ours, theirs in paired(strict[1:], native[1:]):
        assert ours["variables"].items() <= theirs["variables"].items()
        values += sum(ours["inlined"] for _ in ours["variables"])
    assert values


@pytest.mark.parametrize("lldb", PROVIDING)
def test_sframe_bt_has_a_function_with_its_own_line(lldb: str, inlined: Path) -> None:
    """It does not have the line of code that was inlined there."""
    commands = [part for command in ("sframe bt", "sframe explain 0x10") for part in ("-o", command)]
    said = batch(find(lldb), *START[:2], "-o", "breakpoint set -n reached", "-o", "run", *commands, str(inlined))
    source = INLINED.read_text(encoding="utf-8").splitlines()
    for function, statement in (
        ("opened(int)", "found = box.measured(by);"),
        ("main", "volatile int result = passed_on(argc);"),
    ):
        line = next(number for number, text in enumerate(source, 1) if text.strip() == statement)
        assert f"{function} (inlined.cc:{line})" in said
    assert "0x10\nno data: no module has code there" in said


@pytest.mark.parametrize("lldb", PROVIDING)
def test_finish_of_inlined_functions(lldb: str, inlined: Path) -> None:
    """From each frame, it ends at the same place as on LLDB's own stack."""
    launch = "process launch -o /dev/null -- x"
    rounds = [(launch, f"frame select {number}", "finish", "frame info", "process kill") for number in range(5)]
    typed = [part for one in rounds for command in one for part in ("-o", command)]
    off, strict = (
        batch(find(lldb), "-O", IMPORT, "-o", setting, "-o", "breakpoint set -n reached", *typed, str(inlined))
        for setting in ("sframe mode off", "sframe strict on")
    )
    ends = [re.findall(r"^\(lldb\) frame info\n(.*)$", said, re.M) for said in (off, strict)]
    assert ends[0] == ends[1]
    assert len(ends[0]) == len(rounds)
    assert len(set(ends[0])) >= 3


@pytest.mark.parametrize("lldb", PROVIDING)
def test_registers_are_right_or_absent(lldb: str) -> None:
    native, strict = frames_of(find(lldb), program(LEAF, variant="O0")).values()
    given = [set(frame["registers"]) for frame in strict if frame["synthetic"]]
    assert len(given) >= 3
    # LLDB 22 and 23 keep a reference to a frame's registers after they freed them, so frames have none there.
    wanted = {"rip", "rsp", "rbp"} if takes_registers(lldb) else set()
    assert all(names == wanted for names in given)
    assert strict[0]["registers"] == native[0]["registers"]
    assert "rbx" in strict[0]["registers"]
    for ours, theirs in paired(strict, native):
        assert ours["registers"].items() <= theirs["registers"].items()


@pytest.mark.parametrize("lldb", PROVIDING)
def test_commands_on_such_frames(lldb: str) -> None:
    commands = ("frame variable", "frame variable a", "p a", "frame variable &a", "frame variable no_such_thing")
    said = run(find(lldb), "sframe_only", "sframe strict on", "frame select 1", *commands[:-1], "sframe explain")
    assert "[synthetic]" in said
    assert said.count("(int) a = ") == 2
    assert "(int *) &a = 0x" in said
    assert "return address = " in said


@pytest.mark.parametrize("lldb", PROVIDING)
def test_switched_off_again(lldb: str) -> None:
    said = run(find(lldb), "leaf", "sframe strict on", "bt", "sframe strict off", "bt", "sframe status")
    strict, off = said.split("(lldb) bt\n")[1:]
    assert "[synthetic]" in strict
    assert "[synthetic]" not in off
    assert "mode auto" in off
    assert "auto, strict" not in off
