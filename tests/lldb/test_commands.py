"""The commands below `sframe`: their output, and their errors."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.debugger.commands import IN_LLDB, SHORT
from sframe_unwind.sframe.table import Match
from tests import schemas
from tests.debugger.lines import is_internal, lines
from tests.expectations import SFRAME_ONLY, STOPS, Stop
from tests.gdb.compiling import tools_for
from tests.hanging import HANG
from tests.lldb.debuggers import PROVIDING, find, find_without_provider
from tests.lldb.driver import IMPORT, answers, batch, call
from tests.lldb.programs import program
from tests.lldb.terminal import terminal
from tests.pairing import paired
from tests.samples.build import build
from tests.waiting import wait_until_idle

LEAF = next(stop for stop in STOPS if stop.name == "leaf")
THREADS = next(stop for stop in STOPS if stop.sample == "threads")
SUMS = ("main", "main + 4", "main+0x4", "main + 4 - 4")
COMMANDS = (*(command.name for command in IN_LLDB), *SHORT)

WRONG = {
    "sframe mode sideways": "mode 'sideways' is not known; Usage: sframe mode [auto | always | fallback | off]",
    "sframe mode off off": "Usage: sframe mode [auto | always | fallback | off]",
    "sframe status x": "Usage: sframe status",
    "sframe backtrace -x": "Usage: sframe backtrace [N] [-all]",
    "sframe backtrace 1 2": "Usage: sframe backtrace [N] [-all]",
    "sframe backtrace 0": "expected 1 or more; Usage: sframe backtrace [N] [-all]",
    "sframe bt '": "expected 1 or more; Usage: sframe backtrace [N] [-all]",
    "sframe compare 3 3": "Usage: sframe compare [N] [-all] [--json]",
    "sframe strict maybe": "strict 'maybe' is not known; Usage: sframe strict [on | off]",
    "sframe explain --json": "Usage: sframe explain [ADDRESS]",
    "sframe explain no_such_thing": "'no_such_thing' is not an address",
    "sframe explain *": "'*' is not an address",
}


@pytest.fixture(params=[*PROVIDING, "without"])
def lldb(request: pytest.FixtureRequest) -> str:
    """Return each LLDB, including the one that takes no frames."""
    name: str = request.param
    return find_without_provider() if name == "without" else find(name)


def run(lldb: str, stop: Stop | None, *commands: str) -> list[tuple[bool, str, str]]:
    """Return the answers of LLDB at a stop; ``None``: without a program."""
    return answers(lldb, program(stop, variant="O0") if stop else None, commands)


def test_answers(lldb: str) -> None:
    commands = ("status", "backtrace", "bt 2", "compare", "compare --json", "explain", "explain $pc + 0", "mode")
    said = run(lldb, LEAF, *(f"sframe {command}" for command in commands))
    assert [error for succeeded, _, error in said if not succeeded] == []
    status, backtrace, two, compare, as_json, explain, at_pc, mode = (output for _, output, _ in said)
    assert "leaf" in status
    assert "amd64" in status
    lines = backtrace.splitlines()
    assert [line.split()[2] for line in lines[:4]] == ["sample_stop", "inner", "outer", "main"]
    assert lines[0].endswith("  sframe")
    assert lines[-1].startswith("end: ")
    assert two.splitlines()[-1] == "end: only the innermost 2 frames were asked for"
    assert len(two.splitlines()) == 3
    assert " frames agree" in compare.splitlines()[-1]
    schemas.check("compare", as_json)
    (thread,) = json.loads(as_json)["threads"]
    assert thread["agrees"]
    assert "return address = " in explain
    assert explain.splitlines()[0] == at_pc.splitlines()[0]
    assert mode == "mode auto\n"


def test_all_threads(lldb: str) -> None:
    (_, shown, _), (_, compared, _) = run(lldb, THREADS, "sframe backtrace -all", "sframe compare -all --json")
    assert sum(line.startswith("Thread ") for line in shown.splitlines()) == 4
    assert sum("wait_at" in line for line in shown.splitlines()) == 2 + 3 + 4
    schemas.check("compare", compared)
    threads = json.loads(compared)["threads"]
    assert len(threads) == 4
    assert all(thread["agrees"] for thread in threads)


def test_compare_says_what_was_compared(lldb: str) -> None:
    (_, two, _), (_, whole, _) = run(lldb, LEAF, "sframe compare 2", "sframe compare")
    assert [line.split()[0] for line in two.splitlines()[1:-1]] == ["#0", "#1"]
    assert two.splitlines()[-1] == "2 frames agree"
    assert re.search(
        r"^\d+ frames agree, 4 of them by SFrame; 1 outermost frame has no CFA$", whole.splitlines()[-1]
    )  # not the C library's
    ((_, every, _),) = run(lldb, THREADS, "sframe compare -all")
    verdict = r"^4 threads: \d+ frames agree, \d+ of them by SFrame; 4 outermost frames have no CFA$"
    assert re.search(verdict, every.splitlines()[-1])


@pytest.mark.parametrize("stop", [None, LEAF], ids=["nothing", "program"])
def test_wrong_arguments(lldb: str, stop: Stop | None) -> None:
    for command, (succeeded, output, error) in paired(WRONG, run(lldb, stop, *WRONG)):
        assert not succeeded, command
        assert not output.strip(), command
        if stop or "is not an address" not in WRONG[command]:
            assert WRONG[command] in error, (command, error)
        assert len(error.strip().splitlines()) == 1, (command, error)


def test_arguments_by_chance(lldb: str) -> None:
    typed = lines(0, 250)
    failed = 0
    for command, (succeeded, output, error) in paired(typed, run(lldb, LEAF, *typed)):
        assert succeeded == bool(output.strip()), command
        assert succeeded or not is_internal(error), (command, error)
        failed += not succeeded
    assert 50 < failed < 240, failed


def test_sums_of_a_function_and_a_number(lldb: str) -> None:
    said = [output for _, output, _ in run(lldb, LEAF, *(f"sframe explain {text}" for text in SUMS))]
    assert [text.split()[1] for text in said] == ["main"] * 4
    start, *others = (int(text.split()[0], 16) for text in said)
    assert others == [start + 4, start + 4, start]


@pytest.mark.parametrize("command", ["explain", "disassemble", "disassemble $pc"])
@pytest.mark.parametrize("stop", [LEAF, SFRAME_ONLY], ids=["leaf", "sframe_only"])
def test_the_frame_of_a_command_counts_although_the_thread_has_another_one_selected(
    lldb: str, stop: Stop, command: str
) -> None:
    numbers = list(range(4))
    described = program(stop, variant="O0")
    answered = call(lldb, "commands", "of_frames", command=f"sframe {command}", frames=numbers, program=described)
    assert len({output for (_, output, _), _ in answered}) == len(numbers)
    for selected, given in answered:
        assert given == selected


def test_more_frames_than_there_are(lldb: str) -> None:
    numbers = ("", " 99999999999999999999", f" {'9' * 5000}", " 0000000000000000000003", " 3")
    every, *many, padded, three = run(lldb, LEAF, *(f"sframe bt{number}" for number in numbers))
    assert many == [every] * 2
    assert padded == three


def test_nothing_to_work_on(lldb: str) -> None:
    commands = ("status", "mode", "bt", "compare", "explain")
    status, mode, *others = run(lldb, None, *(f"sframe {command}" for command in commands))
    assert status[0]
    assert "no stopped process" in status[1]
    assert mode == (True, "mode auto\n", "")
    assert {(succeeded, error) for succeeded, _, error in others} == {(False, "error: sframe: no stopped process\n")}
    assert run(lldb, None, "sframe convert") == [
        (False, "", "error: sframe: no program: 'target create FILE' opens one\n")
    ]


def test_explain_needs_no_process(lldb: str) -> None:
    """The addresses are those of the file, and the row is that of its section."""
    path = build("recursion")
    commands = [f"sframe explain {text}" for text in ("main", "main+4", "main + 4", "nosuch", "")]
    create = f"target create '{path}'"
    before, _, start, once, again, nosuch, nothing = run(lldb, None, commands[0], create, *commands)
    assert before == (False, "", "error: sframe: no process, and no program file\n")
    assert once == again
    address = int(start[1].split()[0], 16) + 4
    assert once[1].startswith(f"{address:#x} main (recursion.c:")
    match = elf.load(path)[0].lookup(address)
    assert isinstance(match, Match)
    assert f"FDE:   {match.function.start:#x} to {match.function.end:#x}" in once[1]
    assert f"row:   from +{match.row_start:#x}\n" in once[1]
    assert "'nosuch' is not an address" in nosuch[2]
    assert nothing == (False, "", "error: sframe: no stopped process\n")


def test_help(lldb: str) -> None:
    said = run(lldb, None, "help sframe", *(f"help sframe {name}" for name in COMMANDS))
    assert all(succeeded for succeeded, _, _ in said)
    for name in COMMANDS:
        assert f"{name} " in said[0][1]
    for _, output, _ in said[1:]:
        assert "Usage: sframe " in output


def test_lldb_without_provider_says_what_is_missing() -> None:
    said = batch(find_without_provider(), "-o", IMPORT, "-o", IMPORT, "-o", "sframe status")
    lines = [line for line in said.splitlines() if "no scripted frame provider" in line]
    assert len(lines) == 1  # in the status: in batch mode, loading prints nothing
    assert lines[0].startswith("sframe-unwind ")


def test_completion(lldb: str) -> None:
    for typed, offered in call(lldb, "commands", "complete", typed=["sframe ", "sframe ba", "sframe s"]).items():
        assert offered == sorted(name for name in COMMANDS if f"sframe {name}".startswith(typed)), typed


@pytest.mark.parametrize("name", PROVIDING)
def test_running_process(name: str) -> None:
    # The path of the plugin is not typed: LLDB's line editor loses bytes of characters that are not ASCII.
    with terminal(find(name), "-O", IMPORT) as session:
        session.run("target create /bin/sleep")
        launched = re.search(r"Process (\d+) launched", session.run("process launch -- 60"))
        assert launched is not None
        # If it is interrupted while the dynamic linker reports libraries to LLDB, it stops without a shown reason.
        wait_until_idle(int(launched[1]))
        assert "no stopped process" in session.run("sframe status")
        assert "error: sframe: no stopped process: it is running" in session.run("sframe bt")
        session.resume("process interrupt")
        assert "without SFrame: sleep" in session.run("sframe status")
        assert " 0 of them by SFrame" in session.run("sframe compare")
        session.run("process kill")
        assert "no stopped process" in session.run("sframe status")


CLASSES = """
namespace space {
template <class T> struct Box {
    T value;
    __attribute__((noinline)) T get(T added) { volatile T kept = added; return kept + value; }
};
__attribute__((noinline)) int outer(int n) { Box<int> box{n}; return box.get(n) + 1; }
__attribute__((noinline)) int twice(int n) { return outer(n) + 1; }
__attribute__((noinline)) int twice(long n) { return outer(n) + 2; }
}
int main(int count, char **) { return space::twice(count) + space::twice(2L); }
"""


def test_explain_takes_names_that_only_symbols_have(lldb: str, tmp_path: Path) -> None:
    """LLDB's expressions have no names of C++ where there is no debug information; `bt` shows these names."""
    (tmp_path / "classes.cc").write_text(CLASSES, encoding="utf-8")
    compiler = ("g++", "-O1", f"-B{tools_for(3)}/", "-Wa,--gsframe", "classes.cc", "-o", "classes")
    subprocess.run(compiler, cwd=tmp_path, check=True, timeout=HANG)
    explained = ("space::outer", "space::outer + 1", "space::Box<int>::get", "space::twice(long)", "space::twice")
    commands = [part for name in explained for part in ("-o", f"sframe explain {name}")]
    start = ("-o", "breakpoint set -n main", "-o", "process launch -o /dev/null")
    for first in ((), start):
        said = batch(lldb, "-O", IMPORT, *first, *commands, str(tmp_path / "classes"), status=None)
        found = re.findall(r"^0x(\w+) (space::.*?) \(classes", said.partition("(lldb) sframe explain")[2], re.MULTILINE)
        assert [name for _, name in found] == [
            *("space::outer(int)", "space::outer(int)", "space::Box<int>::get(int)", "space::twice(long)")
        ]
        assert int(found[1][0], 16) == int(found[0][0], 16) + 1
        assert "'space::twice' is not an address" in said  # there are two
