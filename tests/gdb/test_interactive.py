"""Behaviour at a terminal: the prompt, completion with TAB, Ctrl-C."""

from __future__ import annotations

import re
from pathlib import Path

from tests.expectations import STOPS, Stop
from tests.gdb.damage import CHANGES, damaged
from tests.gdb.driver import Debugger
from tests.gdb.programs import built
from tests.gdb.stacks import names_in
from tests.gdb.terminal import PROMPT, Terminal, plain, terminal
from tests.waiting import wait_until_idle, wait_until_it_worked

ABI = "amd64"
LEAF = next(stop for stop in STOPS if stop.sample == "leaf")
DEEP = Stop("recursion", (), ("20000",))


def test_a_session(debugger: Debugger) -> None:
    with terminal(debugger, built("leaf", ABI, 3), "break sample_stop") as gdb:
        assert len(re.findall(r"^sframe-unwind ", gdb.shown, flags=re.MULTILINE)) == 1
        assert "\nsframe: no process\n" in "\n" + plain(gdb.run("sframe compare"))
        gdb.run("run")
        assert names_in(gdb.run("bt")) == list(LEAF.functions)
        assert plain(gdb.run("sframe compare")).splitlines()[-1].startswith(f"{len(LEAF.functions)} frames agree")
        assert gdb.run("set sframe mode off") == ""
        assert names_in(gdb.run("bt")) == list(LEAF.functions)
        assert "is 'off'" in gdb.run("show sframe mode")
        gdb.run("set sframe mode always")
        assert gdb.run("up").startswith("#1 ")
        assert "<inner+" in gdb.run("sframe explain")
        # An empty line repeats a command.
        assert plain(gdb.run("sframe bt 1")) == plain(gdb.run(""))
        gdb.run("kill")
        assert gdb.run("bt").strip() == "No stack."


def test_a_line_about_damaged_data_follows_the_backtrace(debugger: Debugger, tmp_path: Path) -> None:
    """The damage is found while GDB prints the frames."""
    change, _ = CHANGES["table cut"]
    program = damaged(built("callback", ABI, 3), change, tmp_path)
    line = f"sframe: {program}: SFrame data not used: "
    with terminal(debugger, program, "break qsort", "run") as gdb:
        assert line not in plain(gdb.shown)
        *frames, last = plain(gdb.run("bt")).splitlines()
        assert names_in("\n".join(frames))[-1] == "main"
        assert frames[-1].startswith("#")
        assert last.startswith(line)
        assert line not in plain(gdb.run("bt"))


def test_a_line_is_not_lost_if_no_prompt_follows(debugger: Debugger, tmp_path: Path) -> None:
    change, _ = CHANGES["table cut"]
    program = damaged(built("callback", ABI, 3), change, tmp_path)
    script = tmp_path / "script"
    script.write_text("bt\nquit\n")
    with terminal(debugger, program, "break qsort", "run") as gdb:
        gdb.type(f"source {script}\n")
        gdb.wait(f"sframe: {program}: SFrame data not used: ")


def test_completion_with_tab(debugger: Debugger) -> None:
    with terminal(debugger, built("leaf", ABI, 3), "break sample_stop", "run") as gdb:
        assert gdb.after_tab("sfr", "sframe ")
        assert gdb.after_tab("sframe comp", "compare ")
        assert gdb.after_tab("sframe compare --j", "--json")
        assert gdb.after_tab("sframe backtrace -a", "all")
        assert gdb.after_tab("set sframe mode fa", "fallback")
        assert gdb.after_tab("sframe explain leaf_without", "leaf_without_stack")
        # If several fit, a second press lists them.
        gdb.type("sframe \t\t")
        listed = gdb.wait(f"{PROMPT}sframe ")
        assert set(listed.split()) >= {"backtrace", "bt", "compare", "explain", "status"}
        gdb.interrupt()
        gdb.wait()
        gdb.type("set sframe mode \t\t")
        listed = gdb.wait(f"{PROMPT}set sframe mode ")
        assert set(listed.split()) >= {"always", "fallback", "off"}
        gdb.interrupt()
        gdb.wait()
        assert names_in(gdb.run("bt")) == list(LEAF.functions)


def test_interrupting_a_long_backtrace(debugger: Debugger) -> None:
    path = built("recursion", ABI, 3)
    with terminal(debugger, path, "break sample_stop", f"set args {DEEP.arguments[0]}", "run") as gdb:
        # GDB 13 sometimes loses a Ctrl-C if there is an unwinder in Python: 1 of 200 with one that returns None.
        attempts = 1 if debugger.version >= (14,) else 4
        for begin in ("#40 ", "#1000 "):
            assert any(_quits(gdb, begin) for _ in range(attempts))
        for command in ("sframe bt", "sframe compare", "bt -1"):
            gdb.type(f"{command}\n")
            wait_until_it_worked(gdb.process, 0.1)  # during a walk that takes longer
            gdb.interrupted()
        # The interrupt is over, and the session continues as before.
        gdb.type("\n")
        gdb.wait()
        gdb.run("python gdb.invalidate_cached_frames()")
        assert names_in(gdb.run("bt 3"))[:2] == ["sample_stop", "descend"]
        assert "is 'auto'" in gdb.run("show sframe mode")
        gdb.run("set sframe mode off")
        native = gdb.run("bt 30")
        gdb.run("set sframe mode always")
        assert names_in(gdb.run("bt 30")) == names_in(native)


def test_a_ctrl_c_that_comes_after_the_command(newest: Debugger) -> None:
    """GDB shows two prompts then.  On a busy machine, a Ctrl-C of the test above can come so late, too."""
    with terminal(newest) as gdb:
        gdb.type("echo early\\n\n")
        wait_until_idle(gdb.process)
        assert "early" in gdb.interrupted()
        assert gdb.run("echo right\\n") == "right\n"


def _quits(gdb: Terminal, begin: str) -> bool:
    """Press Ctrl-C when ``bt`` has shown a text, and return whether GDB ended the command."""
    gdb.type("bt\n")
    gdb.wait(begin)
    shown = gdb.interrupted()
    # If Ctrl-C comes while GDB's own unwinder works, GDB shows the stack cut off there from then on, also without the
    # plugin.
    gdb.run("python gdb.invalidate_cached_frames()")
    return "Quit" in shown


def test_the_stack_is_whole_after_an_interrupt_within_the_unwinder(debugger: Debugger) -> None:
    """The time of a Ctrl-C is random; here it comes while frame 10 is unwound."""
    interrupting = """python
import gdb_plugin.frames.unwinder as unwinder
calls, step = iter(range(100)), unwinder.step
def interrupted(**arguments):
    if next(calls, 100) == 10:
        raise KeyboardInterrupt
    return step(**arguments)
unwinder.step = interrupted
end"""
    commands = ("set sframe strict on", "break sample_stop", "set args 30", "run")
    with terminal(debugger, built("recursion", ABI, 3), *commands) as gdb:
        for line in interrupting.splitlines():
            gdb.type(f"{line}\n")
        gdb.wait()
        gdb.type("bt 20\n")
        gdb.wait("Quit")
        gdb.wait()
        assert len(names_in(gdb.run("bt 20"))) == 20
