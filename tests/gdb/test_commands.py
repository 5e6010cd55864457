"""The commands: help, completion, output, and error lines."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from sframe_unwind import elf
from sframe_unwind.debugger.commands import IN_BOTH
from sframe_unwind.sframe.table import Match
from tests import schemas
from tests.debugger.lines import is_internal, lines
from tests.expectations import AGREEMENT, STOPS, Stop
from tests.gdb.compiling import compiled
from tests.gdb.driver import PLUGIN, Debugger, batch, call
from tests.gdb.programs import built, program
from tests.pairing import paired

ABI = "amd64"
COMMANDS = tuple(command.name for command in IN_BOTH)
BACKTRACE = (
    "sframe backtrace [N] [-all] [-regs pc=EXPR,sp=EXPR,fp=EXPR[,lr=EXPR] | -ucontext EXPR | -jmpbuf EXPR | -task PID]"
)
MODES = ("always", "fallback", "off")
LEAF = next(stop for stop in STOPS if stop.sample == "leaf")
THREADS = next(stop for stop in STOPS if stop.sample == "threads")


def session(debugger: Debugger, *commands: str, stop: Stop | None = None, variant: str = "O2") -> list[dict[str, str]]:
    """Return the output or the error of each command, with a sample at its place if a stop is given."""
    described = program(stop, built(stop.sample, ABI, 3, variant), ABI) if stop else None
    answer: list[dict[str, str]] = call(debugger, "console.session", commands=list(commands), program=described)
    return answer


def outputs(answers: list[dict[str, str]]) -> list[str]:
    """Return the output of commands; each must succeed."""
    for answer in answers:
        assert not answer["error"], answer
    return [answer["output"] for answer in answers]


def test_help(debugger: Debugger) -> None:
    prefix, setting, *texts = outputs(
        session(debugger, "help sframe", "help set sframe mode", *(f"help sframe {name}" for name in COMMANDS))
    )
    for name, text in paired(COMMANDS, texts):
        assert f"Usage: sframe {name}" in text
        assert f"sframe {name}" in prefix
    for mode in MODES:
        assert re.search(rf"\b{mode}\b[^:]*: ", setting)


def test_help_of_the_short_name_is_that_of_the_long_one(debugger: Debugger) -> None:
    assert "Usage: sframe backtrace" in outputs(session(debugger, "help sframe bt"))[0]


def test_the_prefix_alone_lists_the_commands(debugger: Debugger) -> None:
    (text,) = outputs(session(debugger, "sframe"))
    assert all(f"sframe {name}" in text for name in COMMANDS)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sframe c", ["sframe compare"]),
        ("sframe b", ["sframe backtrace", "sframe bt"]),
        ("set sframe m", ["set sframe mode"]),
        ("set sframe mode f", ["set sframe mode fallback"]),
        ("show sframe m", ["show sframe mode"]),
        (
            "sframe backtrace -",
            [f"sframe backtrace {option}" for option in ("-all", "-jmpbuf", "-regs", "-task", "-ucontext")],
        ),
        ("sframe backtrace 3 -u", ["sframe backtrace 3 -ucontext"]),
        ("sframe compare -", ["sframe compare --json", "sframe compare -all"]),
        ("sframe compare -all -", ["sframe compare -all --json"]),
        ("sframe compare --j", ["sframe compare --json"]),
    ],
)
def test_completion(newest: Debugger, typed: str, offered: list[str]) -> None:
    (text,) = outputs(session(newest, f"complete {typed}"))
    assert sorted(text.splitlines()) == offered


def test_completion_of_expressions(debugger: Debugger) -> None:
    (text,) = outputs(session(debugger, "complete sframe explain leaf_with", stop=LEAF))
    assert set(text.splitlines()) == {"sframe explain leaf_with_stack", "sframe explain leaf_without_stack"}
    (text,) = outputs(session(debugger, "complete sframe bt 3 -ucontext leaf_witho", stop=LEAF))
    assert text.splitlines() == ["sframe bt 3 -ucontext leaf_without_stack"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sframe status now", "Usage: sframe status"),
        ("sframe backtrace -al", f"Usage: {BACKTRACE}"),
        ("sframe backtrace 1 2", f"Usage: {BACKTRACE}"),
        ("sframe bt 0", f"the number of frames is '0', expected 1 or more; Usage: {BACKTRACE}"),
        ("sframe bt x", f"the number of frames is 'x', expected 1 or more; Usage: {BACKTRACE}"),
        ("sframe compare --jsn", "Usage: sframe compare [N] [-all] [--json]"),
        ("sframe compare 3 4", "Usage: sframe compare [N] [-all] [--json]"),
        ("sframe explain no_such_symbol", 'sframe: No symbol "no_such_symbol" in current context.'),
        ("sframe explain 1 +", "sframe: A syntax error in expression, near the end of `1 +'."),
        ("sframe explain 'unfinished", "sframe: Unmatched single quote."),
    ],
)
def test_mistakes_cost_one_line(newest: Debugger, command: str, message: str) -> None:
    answers = session(newest, command, "set sframe mode perhaps", stop=LEAF)
    assert [answer["error"] for answer in answers] == [message, 'Undefined item: "perhaps".']


@pytest.mark.parametrize("command", ["sframe compare 'unfinished", "sframe bt 'unfinished", "sframe nothing"])
def test_other_mistakes_are_errors_too(debugger: Debugger, command: str) -> None:
    (answer,) = session(debugger, command, stop=LEAF)
    assert len(answer["error"].splitlines()) == 1


def test_arguments_by_chance(debugger: Debugger) -> None:
    answers = session(debugger, *lines(0, 250), stop=LEAF)
    failed = [answer for answer in answers if answer["error"]]
    assert [answer for answer in failed if is_internal(answer["error"])] == []
    assert 50 < len(failed) < 240, len(failed)


def test_mode(debugger: Debugger) -> None:
    commands = [part for mode in MODES for part in (f"set sframe mode {mode}", "show sframe mode")]
    first, *rest = outputs(session(debugger, "show sframe mode", *commands))
    assert first == "The mode of the SFrame unwinder is 'auto'.\n"
    assert rest[1::2] == [f"The mode of the SFrame unwinder is '{mode}'.\n" for mode in MODES]
    assert rest[::2] == ["", "", ""]


def test_status(debugger: Debugger) -> None:
    (text,) = outputs(session(debugger, "sframe status", stop=LEAF))
    lines = text.splitlines()
    version = ".".join(str(part) for part in debugger.version)
    assert re.match(rf"sframe-unwind \S+, GDB {version}; ", lines[0])
    assert "mode auto" in lines
    row = next(line for line in lines if line.startswith("leaf "))
    assert re.search(r"0x[0-9a-f]+ +3 +amd64 +\d+ +FDE_FUNC_START_PCREL FDE_SORTED +\d+%", row)
    assert lines[-1].startswith("without SFrame: ")
    assert "libc.so.6" in lines[-1]


def test_backtrace(debugger: Debugger) -> None:
    commands = ("sframe backtrace", "sframe backtrace 2", "sframe bt")
    whole, short, short_name = outputs(session(debugger, *commands, stop=LEAF))
    lines = whole.splitlines()
    assert [line.split()[2] for line in lines[:-1]] == list(LEAF.functions)
    assert all(line.split()[0] == f"#{level}" and line.endswith(" sframe") for level, line in enumerate(lines[:-1]))
    assert lines[-1].startswith("end: main; ")
    assert short.splitlines()[:2] == whole.splitlines()[:2]
    assert short.splitlines()[2:] == ["end: only the innermost 2 frames were asked for"]
    assert short_name == whole


def test_backtrace_of_all_threads(debugger: Debugger) -> None:
    (text,) = outputs(session(debugger, "sframe backtrace -all", stop=THREADS))
    titles = [line for line in text.splitlines() if line.startswith("Thread ")]
    assert [title.split()[1] for title in titles] == ["1", "2", "3", "4"]
    assert len([line for line in text.splitlines() if line.startswith("end: ")]) == 4
    assert text.count(" worker ") == 3


def test_the_selected_frame_and_thread_stay_selected(debugger: Debugger) -> None:
    commands = ("thread 3", "frame 2", "sframe bt -all", "sframe compare -all", "sframe status", "frame", "thread")
    answers = outputs(session(debugger, *commands, stop=THREADS))
    assert answers[-2].startswith("#2 ")
    assert answers[-1].startswith("[Current thread is 3 ")


@pytest.mark.parametrize(("arguments", "count"), [("--json", 1), ("-all --json", 4), ("--json -all", 4)])
def test_comparison_as_json(debugger: Debugger, arguments: str, count: int) -> None:
    (text,) = outputs(session(debugger, f"sframe compare {arguments}", stop=THREADS))
    schemas.check("compare", text)
    answer = json.loads(text)
    assert len(answer["threads"]) == count
    for thread in answer["threads"]:
        _check_thread(thread)


def _check_thread(thread: dict[str, Any]) -> None:
    assert thread["agrees"] is True
    for level, frame in enumerate(thread["frames"]):
        assert frame["level"] == level
        is_outermost = level + 1 == len(thread["frames"]) and None in (frame["cfa"], frame["sframe_cfa"])
        assert frame["agrees"] is (None if is_outermost else True)
        assert frame["pc"] == frame["sframe_pc"]
        assert frame["cfa"] == frame["sframe_cfa"]
        assert frame["unwinder"] in ("sframe", "gdb", None)


def test_verdicts(debugger: Debugger) -> None:
    only = Stop("sframe_only", ())
    (agrees,) = outputs(session(debugger, "sframe compare", stop=LEAF))
    (differs,) = outputs(session(debugger, "sframe compare", stop=only))
    assert agrees.splitlines()[-1].startswith(f"{len(LEAF.functions)} frames agree")
    assert re.match(r"first difference at frame 1: (pc|CFA|FP) 0x[0-9a-f]+ native, 0x", differs.splitlines()[-1])
    assert "<-- " in differs
    (every,) = outputs(session(debugger, "sframe compare -all", stop=THREADS))
    assert len(re.findall(rf"^{AGREEMENT}$", every, flags=re.MULTILINE)) == 4


def test_explanation_of_the_selected_frame(debugger: Debugger) -> None:
    here, _, there = outputs(session(debugger, "sframe explain", "frame 1", "sframe explain", stop=LEAF))
    assert "<sample_stop+" in here.splitlines()[0] or "<sample_stop>" in here.splitlines()[0]
    assert "<inner+" in there.splitlines()[0]
    for text in (here, there):
        assert re.search(r"^FDE:   0x[0-9a-f]+ to 0x[0-9a-f]+", text, flags=re.MULTILINE)
        assert re.search(r"^row:   from \+0x", text, flags=re.MULTILINE)
        assert re.search(r"^rule:  sp\+\d+ ", text, flags=re.MULTILINE)
        assert re.search(r"^       CFA = 0x[0-9a-f]+$", text, flags=re.MULTILINE)


def test_explanation_of_an_address(debugger: Debugger) -> None:
    commands = [f"sframe explain {address}" for address in ("main", "16", "puts", "$pc")]
    of_main, of_none, of_libc, of_register = outputs(session(debugger, *commands, stop=LEAF))
    assert "<main>" in of_main.splitlines()[0] or "<main+" in of_main.splitlines()[0]
    assert "here:" not in of_main
    assert "no data: no module has code there" in of_none
    assert "no data: the module has no SFrame section" in of_libc
    assert "<sample_stop+" in of_register or "<sample_stop>" in of_register


@pytest.mark.parametrize("command", [*COMMANDS, "bt", "compare --json", "backtrace -all"])
def test_without_a_process(debugger: Debugger, command: str) -> None:
    (plain,) = session(debugger, f"sframe {command}")
    program = built("leaf", ABI, 3)
    with_file = batch(debugger, f"sframe {command}", executable=program)
    if command == "status":
        assert plain["output"].splitlines()[-1] == "no stack to unwind: no process"
        why, hint = with_file.splitlines()[-2:]
        assert why == "no stack to unwind: no process"
        assert hint.startswith(f"sframe-unwind dump {shlex.quote(str(program))} ")
    else:
        assert plain["error"] == "sframe: no process"
        assert with_file.splitlines()[-1] == "sframe: no process"


def test_explain_needs_no_process(debugger: Debugger) -> None:
    """The addresses are those of the file, and `lookup` gives the same row."""
    path = built("recursion", ABI, 3)
    asked = ("main", "main+4", "main + 4", "nosuch", "99999999999999999999", "")
    shown = [batch(debugger, f"sframe explain {address}", executable=path).strip() for address in asked]
    answers = [re.sub(r"(?m)^code: .*$", "", text) for text in shown]
    address = int(answers[0].split()[0], 16)
    assert answers[1] == answers[2]
    assert answers[1].startswith(f"{address + 4:#x}")
    section, found = elf.load(path)[0], answers[1]
    match = section.lookup(address + 4)
    assert isinstance(match, Match)
    assert f"FDE:   {match.function.start:#x} to {match.function.end:#x}" in found
    assert f"row:   from +{match.row_start:#x}" in found
    assert [text.splitlines() for text in shown[3:]] == [
        ['sframe: No symbol "nosuch" in current context.'],
        ["sframe: Numeric constant too large."],
        ["sframe: no process"],
    ]
    assert batch(debugger, "sframe explain 0x1000").strip() == "sframe: no process, and no program file"


def test_all_threads_in_non_stop_mode_while_the_selected_one_runs(debugger: Debugger) -> None:
    commands = ("set non-stop on", "run &", "sframe bt -all", "sframe compare -all")
    shown = batch(debugger, *commands, executable=built("recursion", ABI, 3))
    assert "No frame is currently selected" not in shown
    assert shown.count("Thread 1 is running\n") == 2


@pytest.mark.usefixtures("fixed_addresses")
def test_frame_view_is_as_without_the_plugin(debugger: Debugger) -> None:
    """GDB 13 fails if an unwinder in Python reads registers of such a frame, whenever GDB makes it anew."""
    place = ("break sample_stop", "run", "set $stack = $rsp", "set $code = $pc")
    views = ("frame view $stack $code", "select-frame view $stack $code", "info frame view $stack $code")
    for view in views:
        commands = (*place, view, "maint flush register-cache", "bt", "info frame", "up", "bt", "finish", "bt")
        alone, shown = (
            batch(debugger, *commands, executable=built("recursion", ABI, 3), plugin=plugin)
            for plugin in (None, PLUGIN)
        )
        assert [line for line in shown.splitlines() if not line.startswith("sframe: ")] == alone.splitlines()
        assert ("sframe: all frames are GDB's own until the process runs" in shown) == (debugger.version[0] < 14)
        assert "sample_stop" in shown


def test_explain_shows_names_as_the_program_has_them(newest: Debugger, tmp_path: Path) -> None:
    executable = compiled("methods.cc", tmp_path, "-O0")
    output = batch(newest, "break counters::Counter::next", "run", "sframe explain", executable=executable)
    assert "<counters::Counter::next(int)+" in output
    assert "_ZN" not in output
