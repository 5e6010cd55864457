"""Reads the arguments of the commands of both plugins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Callable

from sframe_unwind.debugger.commands import ALL, COMPARE, CONTEXTS, SOURCE, Command
from sframe_unwind.errors import SFrameError
from sframe_unwind.named_tuple import NamedTuple

_CONTEXT = re.compile(rf"(?:^|\s)({'|'.join(CONTEXTS)})(?:\s+(.*)|$)", re.DOTALL)
_MOST = 10**9
"""The greatest limit; greater ones are reduced to it, since some functions of Python fail with numbers of 20 digits."""


class UsageError(SFrameError):
    """A command was called with wrong arguments; the message has the usage."""


class ContextArgument(NamedTuple):
    """The option of a command that names a context that does not run."""

    option: str
    """One of :data:`CONTEXTS`."""
    text: str
    """The argument of the option."""


class Arguments(NamedTuple):
    """The arguments of a command."""

    options: frozenset[str]
    limit: int | None
    """N: the number of innermost frames to show; ``None``: all."""
    rest: tuple[str, ...]
    context: ContextArgument | None = None
    """``None``: the command shows the threads."""
    coloured: bool = False
    """Whether the debugger writes colours; only for a command that has colours."""


def _as_one_word(line: str) -> Sequence[str]:
    return [line.strip()] if line.strip() else []


def parse_line(command: Command, line: str, split: Callable[[str], Sequence[str]]) -> Arguments:
    """Return the arguments; see :func:`parse`.

    :param line: the text after the name of the command.
    :param split: splits a line into words as the debugger does; not called for a command that takes text.
    """
    if command.takes_text:
        split = _as_one_word
    found = _CONTEXT.search(line)
    if found is None:
        return parse(command, split(line))
    context = ContextArgument(found[1], (found[2] or "").strip())
    if command is COMPARE:
        raise UsageError(f"not comparable: the debugger cannot unwind the context of {context.option}")
    arguments = parse(command, split(line[: found.start()]))
    if not command.takes_context or not context.text or ALL in arguments.options or arguments.rest:
        raise UsageError(command.usage_line())
    return arguments._replace(context=context)


def parse(command: Command, words: Sequence[str]) -> Arguments:
    """Return the arguments.

    :param words: the words of the line, in the debugger's way of splitting it.
    :raises UsageError: an unknown option, too many words, or an invalid number of frames.
    """
    options = frozenset(word for word in words if word in command.options)
    rest = [word for word in words if word not in options]
    limit = None
    if command.takes_limit and rest and not rest[0].startswith("-"):
        limit = _limit(command, rest.pop(0))
    if len(rest) > command.positional or any(word.startswith("-") for word in rest):
        raise UsageError(command.usage_line())
    return Arguments(options, limit, tuple(rest))


def _limit(command: Command, word: str) -> int:
    digits = word.lstrip("0")
    if not (digits.isascii() and digits.isdigit()):
        raise UsageError(f"the number of frames is {word!r}, expected 1 or more; {command.usage_line()}")
    return int(digits) if len(digits) <= len(str(_MOST)) else _MOST


def source_and_address(arguments: Arguments) -> tuple[bool, str]:
    """Return whether the lines of source are wanted, and the expression for an address; empty: there is none."""
    text = "".join(arguments.rest)
    if text.split()[:1] == [SOURCE]:
        return True, text[len(SOURCE) :].strip()
    return False, text
