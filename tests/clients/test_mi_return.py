"""`-exec-return` of MI, which runs no hook, where registers of the caller are not known."""

from __future__ import annotations

import re
from pathlib import Path

from tests.clients.homes import gdb_environment
from tests.clients.process import Process
from tests.clients.test_mi import until_prompt
from tests.gdb.conftest import debugger as debugger
from tests.gdb.driver import Debugger
from tests.gdb.test_callers_registers import both

VALUES = "-data-list-register-values r"
CALLER = ("-stack-list-frames", "-data-evaluate-expression $pc", "-data-evaluate-expression $sp")
UNDONE = "the return is undone: the caller's rbx"


class _Client(Process):
    def __enter__(self) -> _Client:
        return self

    def ask(self, command: str) -> str:
        """Send a command and return the records up to the prompt, and up to the stop if the program runs."""
        self.send(f"{command}\n".encode())
        answer = until_prompt(self)
        while "^running" in answer and not any(line.startswith("*stopped") for line in answer):
            answer += until_prompt(self)
        return "\n".join(answer)

    def start(self, executable: Path) -> None:
        """Stop in a function whose caller needs the registers that it must preserve."""
        for command in (f"-file-exec-and-symbols {executable}", "-exec-arguments > output.txt", "-break-insert leaf"):
            assert "^done" in self.ask(command)
        assert "*stopped" in self.ask("-exec-run")
        assert "^done" in self.ask("-break-delete")

    def end(self, folder: Path) -> str:
        """Let the program end and return what it prints."""
        assert "exited" in self.ask("-exec-continue")
        return (folder / "output.txt").read_text()


def _client(debugger: Debugger, folder: Path, plugin: bool) -> _Client:
    folder.mkdir()
    return _Client([debugger.path, "-q", "--interpreter=mi3"], gdb_environment(folder / "home", plugin), folder)


def test_a_return_that_destroys_registers_is_undone(debugger: Debugger, tmp_path: Path) -> None:
    with_cfi, without = both(tmp_path)
    with _client(debugger, tmp_path / "plain", False) as gdb:
        until_prompt(gdb)
        gdb.start(with_cfi)
        expected = gdb.end(tmp_path / "plain")
    assert expected.count("i=") == 3
    folder = tmp_path / "plugin_"
    with _client(debugger, folder, True) as gdb:
        until_prompt(gdb)
        gdb.ask('-interpreter-exec console "set sframe strict on"')
        gdb.start(without)
        before = gdb.ask(VALUES)
        for command in ("-exec-return", "-exec-return 1"):
            said = gdb.ask(command)
            assert UNDONE in said
            assert '^error,msg="Quit"' in said
            assert gdb.ask(VALUES) == before
        gdb.ask("-stack-select-frame 1")
        assert UNDONE in gdb.ask("-exec-return")
        assert gdb.ask(VALUES) == before
        assert gdb.end(folder) == expected


def test_other_ways_to_the_caller_are_left_alone(debugger: Debugger, tmp_path: Path) -> None:
    """The program returns, or the user assigns to the registers."""
    _, without = both(tmp_path)
    folder = tmp_path / "plugin_"
    with _client(debugger, folder, True) as gdb:
        until_prompt(gdb)
        gdb.ask('-interpreter-exec console "set sframe strict on"')
        gdb.start(without)
        gdb.ask("-stack-list-frames")
        innermost = re.search(r'value="(0x\w+)', gdb.ask("-data-evaluate-expression $pc"))
        gdb.ask("-stack-select-frame 1")
        place = [re.search(r'value="(?:\([^)]*\) )?(0x\w+)', gdb.ask(command)) for command in CALLER[1:]]
        assert innermost is not None
        assert None not in place
        pc, sp = (match[1] for match in place if match is not None)
        gdb.ask("-stack-select-frame 0")
        stack = gdb.ask("-data-evaluate-expression $sp")
        said = gdb.ask(f"-data-evaluate-expression $sp={sp}")
        said += gdb.ask(f"-data-evaluate-expression $pc={pc}")
        said += gdb.ask("-stack-list-frames")
        match = re.search(r"0x\w+", stack)
        assert match is not None
        said += gdb.ask(f"-data-evaluate-expression $pc={innermost[1]}")
        said += gdb.ask(f"-data-evaluate-expression $sp={match[0]}")
        said += gdb.ask("-stack-list-frames")
        said += gdb.ask("-exec-finish")
        said += gdb.ask("-stack-list-frames")
        assert "undone" not in said
        assert "Quit" not in said
        assert f'addr="{int(pc, 16):#018x}"' in said
        assert gdb.end(folder).count("i=") == 3
