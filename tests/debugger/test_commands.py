"""The arguments and the help of the commands that both plugins share."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sframe_unwind.debugger.arguments import Arguments, ContextArgument, UsageError, parse, parse_line
from sframe_unwind.debugger.commands import (
    BACKTRACE,
    COMPARE,
    EXPLAIN,
    IN_BOTH,
    IN_LLDB,
    MODE,
    SETTINGS,
    STATUS,
    Command,
)
from sframe_unwind.debugger.settings import Settings

DOCS = Path(__file__).resolve().parents[2] / "docs"
CONTEXT = "[-regs pc=EXPR,sp=EXPR,fp=EXPR[,lr=EXPR] | -ucontext EXPR | -jmpbuf EXPR | -task PID]"


def test_options_and_the_number_of_frames() -> None:
    assert parse(COMPARE, []) == Arguments(frozenset(), None, ())
    assert parse(COMPARE, ["--json", "12", "-all"]) == Arguments(frozenset({"-all", "--json"}), 12, ())
    assert parse(BACKTRACE, ["-all", "1"]) == Arguments(frozenset({"-all"}), 1, ())
    assert parse(EXPLAIN, ["main+4"]) == Arguments(frozenset(), None, ("main+4",))


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        (STATUS, ["now"], "Usage: sframe status"),
        (STATUS, ["-all"], "Usage: sframe status"),
        (BACKTRACE, ["--json"], "Usage: sframe backtrace [N] [-all] " + CONTEXT),
        (BACKTRACE, ["3", "4"], "Usage: sframe backtrace [N] [-all] " + CONTEXT),
        (
            BACKTRACE,
            ["0"],
            "the number of frames is '0', expected 1 or more; Usage: sframe backtrace [N] [-all] " + CONTEXT,
        ),
        (
            BACKTRACE,
            ["\xb2"],
            "the number of frames is '\xb2', expected 1 or more; Usage: sframe backtrace [N] [-all] " + CONTEXT,
        ),
        (MODE, ["always", "off"], "Usage: sframe mode [auto | always | fallback | off]"),
    ],
)
def test_what_a_command_does_not_take(command: Command, words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(command, words)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("line", "limit", "option", "text"),
    [
        ("-ucontext fiber->context", None, "-ucontext", "fiber->context"),
        ("  12 -jmpbuf  (a - b, 1) ", 12, "-jmpbuf", "(a - b, 1)"),
        ("-regs pc=1, sp=-regs", None, "-regs", "pc=1, sp=-regs"),
    ],
)
def test_a_context_is_the_rest_of_the_line(line: str, limit: int | None, option: str, text: str) -> None:
    expected = Arguments(frozenset(), limit, (), ContextArgument(option, text))
    assert parse_line(BACKTRACE, line, str.split) == expected


@pytest.mark.parametrize("command", IN_LLDB, ids=[command.name for command in IN_LLDB])
def test_help_has_a_summary_and_the_usage(command: Command) -> None:
    lines = command.help("LLDB").splitlines()
    assert lines[0].endswith(".")
    assert lines[-1] == command.usage_line()
    assert "{" not in command.help("GDB")
    assert max(map(len, lines)) <= 120


def test_settings_are_the_fields_of_the_same_names() -> None:
    """Of the values that are names, GDB takes the first one as the default."""
    assert tuple(setting.name for setting in SETTINGS) == Settings._fields
    for setting, default in zip(SETTINGS, Settings()):
        assert default == (False if setting.is_switch else setting.values[0])
        assert setting.summary.startswith("Show or set ")


def table_of_commands(page: str) -> list[str]:
    """Return the first cells of the table of commands on a page of a debugger."""
    section = (DOCS / page).read_text(encoding="utf-8").partition("\n## Commands\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| (.*?) \| ", section, re.MULTILINE)


def test_the_pages_have_each_command() -> None:
    gdb, lldb = "\n".join(table_of_commands("gdb.md")), "\n".join(table_of_commands("lldb.md"))
    commands = [*(f"set sframe {command.name} " for command in SETTINGS), *(f"sframe {each.name}" for each in IN_BOTH)]
    assert [command for command in commands if f"`{command}" not in gdb] == []
    assert [each.name for each in IN_LLDB if not re.search(rf"`(sframe )?{each.name}\b", lldb)] == []
