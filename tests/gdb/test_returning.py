"""`return` in all clients, in frames whose caller has registers that SFrame does not give."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sframe_unwind.machine.gdb import CALLS
from tests.elf.objects import run as run_tool
from tests.gdb.compiling import FOLDER, compiled, with_and_without_cfi
from tests.gdb.driver import PLUGIN, Debugger, batch
from tests.missing import gdb_needed

REGISTERS = "rbx, r12, r13, r14, r15"
REFUSED = f"the caller's {REGISTERS} cannot be restored"
WARNING = f"GDB left a function without restoring its caller's {REGISTERS}"
BY_MI = 'interpreter-exec mi "-exec-return{}"'
BEHIND_PRINTF = "        x += leaf(r) & 0;"
ANY_CLIENT = {
    "console": ("return",),
    "outer frame": ("up", "return"),
    "console of MI": ('interpreter-exec mi "-interpreter-exec console \\"return\\""',),
    "Python": (r"""python exec("try: gdb.execute('return')\nexcept gdb.error as error: print(error)")""",),
}


def values_in(output: str) -> list[str]:
    """Return the lines with values in the output of the program."""
    return re.findall(r"^i=.*", output, re.MULTILINE)


def shown(debugger: Debugger, executable: Path, *commands: str) -> str:
    """Return GDB's output for a program that has stopped where only SFrame's registers are known."""
    return batch(debugger, "set sframe strict on", "break leaf", "run", *commands, executable=executable)


@pytest.mark.parametrize("client", ANY_CLIENT)
def test_return_is_refused(client: str, debugger: Debugger, tmp_path: Path) -> None:
    _, without = with_and_without_cfi(tmp_path)
    output = shown(debugger, without, *ANY_CLIENT[client], "bt")
    assert REFUSED in output
    assert re.search(r"^#0 +leaf ", output, re.MULTILINE)
    assert WARNING not in output


@pytest.mark.parametrize(("before", "function", "goes_wrong"), [((), "callee", False), (("up",), "main", True)])
def test_mi_warns(before: tuple[str, ...], function: str, goes_wrong: bool, debugger: Debugger, tmp_path: Path) -> None:
    """GDB lets no plugin refuse the MI command, or print anything before it.

    Only `callee` changes registers of its caller, and restores them before it returns.
    """
    with_cfi, without = with_and_without_cfi(tmp_path)
    printed = FOLDER.joinpath("preserved.c").read_text(encoding="utf-8").splitlines().index(BEHIND_PRINTF) + 1
    go_on = ("bt", "delete", f"tbreak {printed}", "continue", "kill")
    output = shown(debugger, without, *before, BY_MI.format(""), *go_on)
    assert output.count(WARNING) == 1
    assert re.search(rf'^\^done,frame=\{{level="0",addr="0x\w+",func="{function}"', output, re.MULTILINE)
    commands = ("break leaf", "run", *before, BY_MI.format(""), *go_on)
    alone = batch(debugger, *commands, executable=with_cfi, plugin=None)
    assert "i=0 " in alone
    assert (values_in(output) != values_in(alone)) == goes_wrong


@pytest.mark.parametrize(("before", "function"), [((), "callee"), (("up",), "main")])
def test_mi_is_silent_where_all_registers_are_known(
    before: tuple[str, ...], function: str, debugger: Debugger, tmp_path: Path
) -> None:
    with_cfi, _ = with_and_without_cfi(tmp_path)
    commands = ("break leaf", "run", "bt", *before, BY_MI.format(" 42"), "bt", "delete", "continue")
    alone, output = (batch(debugger, *commands, executable=with_cfi, plugin=plugin) for plugin in (None, PLUGIN))
    assert f'func="{function}"' in output
    assert WARNING not in output
    assert output.count("exited normally") == 1
    assert len(values_in(output)) == 3
    assert values_in(output) == values_in(alone)


def test_mi_at_the_entry_of_a_function_without_cfi(debugger: Debugger, tmp_path: Path) -> None:
    """All registers are the caller's there."""
    with_cfi, without = with_and_without_cfi(tmp_path)
    commands = ("break *leaf", "run", BY_MI.format(""), "bt", "delete", "continue")
    alone = batch(debugger, *commands, executable=with_cfi, plugin=None)
    output = batch(debugger, *commands, executable=without)
    assert WARNING not in output
    assert len(values_in(output)) == 3
    assert values_in(output) == values_in(alone)


def test_other_ways_to_the_caller_are_silent(debugger: Debugger, tmp_path: Path) -> None:
    _, without = with_and_without_cfi(tmp_path)
    ways = ("finish", "bt", "next", "next", "bt", "print leaf(3)", "bt", "until", "stepi 20", "bt", "advance 25", "bt")
    looks = ("continue", "bt", "set sframe mode off", "bt", "set sframe mode always", "bt", "sframe compare", "bt")
    output = shown(debugger, without, "bt", *ways, *looks)
    assert output.count("main (") > 8
    assert WARNING not in output


def test_functions_that_conditions_call_are_silent(debugger: Debugger, tmp_path: Path) -> None:
    """GDB announces their end in the middle of a command that lets the program run to the caller."""
    gdb_needed(debugger.path, CALLS)
    _, without = with_and_without_cfi(tmp_path)
    condition = "break *(leaf+4) if ((int(*)(void*))fflush)(0) == 7"
    commands = ("delete", "break callee", "continue", "bt", condition, "next", "next", "finish", "bt")
    output = shown(debugger, without, *commands)
    assert "Value returned" in output
    assert "Error" not in output
    assert WARNING not in output


def test_a_return_to_an_inlined_function_is_silent(debugger: Debugger, tmp_path: Path) -> None:
    """The first requested frame is then not at level 0, and seems to belong to the previous chain."""
    executable = compiled("inlined_call.c", tmp_path, "-O2")
    output = shown(debugger, executable, "tbreak 12", "continue", "bt", "maintenance flush register-cache", "bt")
    assert output.count("#1  caller (") == 2
    assert WARNING not in output


def test_inlined_frame(debugger: Debugger, tmp_path: Path) -> None:
    """GDB 13 refuses it only if the innermost frame is inlined; it pops what contains the inlined call."""
    whole = compiled("popped_inlined.c", tmp_path, "-fno-ipa-ra")
    without = tmp_path / "without"
    removed = ("--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr")
    run_tool("objcopy", *removed, whole, without)
    looks = ("set sframe strict on", "break leaf", "run", "up 2", "return", "bt")
    output = batch(debugger, *looks, executable=without)
    assert REFUSED in output or "Can not force return from an inlined function" in output
    assert re.findall(r"^#\d+ .*?\b(\w+) \(", output, re.MULTILINE)[-5:] == ["leaf", "inner", "inlined", "user", "main"]
