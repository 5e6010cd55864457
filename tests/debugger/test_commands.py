"""The arguments and the help of the commands that both plugins have."""

from __future__ import annotations

import pytest

from sframe_unwind.debugger.commands import BACKTRACE, COMPARE, EXPLAIN, MODE, STATUS, STRICT, Command, UsageError

ALL = (MODE, STRICT, STATUS, BACKTRACE, COMPARE, EXPLAIN)


def test_options_and_the_number_of_frames() -> None:
    assert COMPARE.parse([]) == (frozenset(), None, ())
    assert COMPARE.parse(["--json", "12", "-all"]) == (frozenset({"-all", "--json"}), 12, ())
    assert BACKTRACE.parse(["-all", "1"]) == (frozenset({"-all"}), 1, ())
    assert EXPLAIN.parse(["main+4"]) == (frozenset(), None, ("main+4",))


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        (STATUS, ["now"], "Usage: sframe status"),
        (STATUS, ["-all"], "Usage: sframe status"),
        (BACKTRACE, ["--json"], "Usage: sframe backtrace [N] [-all]"),
        (BACKTRACE, ["3", "4"], "Usage: sframe backtrace [N] [-all]"),
        (BACKTRACE, ["0"], "the number of frames is '0', expected 1 or more; Usage: sframe backtrace [N] [-all]"),
        (BACKTRACE, ["\xb2"], "the number of frames is '\xb2', expected 1 or more; Usage: sframe backtrace [N] [-all]"),
        (MODE, ["always", "off"], "Usage: sframe mode [always | fallback | off]"),
    ],
)
def test_what_a_command_does_not_take(command: Command, words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        command.parse(words)
    assert str(caught.value) == message


@pytest.mark.parametrize("command", ALL, ids=[command.name for command in ALL])
def test_help_has_a_summary_and_the_usage(command: Command) -> None:
    lines = command.help("LLDB").splitlines()
    assert lines[0].endswith(".")
    assert lines[-1] == command.usage_line()
    assert "{" not in command.help("GDB")
    assert max(map(len, lines)) <= 120
