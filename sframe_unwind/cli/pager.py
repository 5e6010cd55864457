"""Shows long output at a terminal by a pager, as git does.

The pager is that of ``PAGER``; ``less`` otherwise.  An empty ``PAGER``, and ``cat``, mean none.  For ``less`` and
``lv``, the variables with their options are set if they are not: ``less`` ends if the output fits one screen, and shows
colours.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sframe_unwind.errors import FileError

_DEFAULT = "less"
_DUMB = "dumb"
"""The value of ``TERM`` for a terminal that can only print text.  If it is not set, nothing else is known of it."""
_OPTIONS = {"LESS": "FRX", "LV": "-c"}


@contextmanager
def paged(wanted: bool = True) -> Iterator[bool]:
    """Send what the block prints to a pager, if standard output is a terminal; give the block whether it is one.

    A dumb terminal, as in a shell of Emacs, shows neither colours nor a pager, so it does not count as one.

    :param wanted: ``False``: the user wants no pager.
    :raises FileError: see :func:`pager_command`.
    """
    is_terminal = sys.stdout.isatty() and os.environ.get("TERM", _DUMB) != _DUMB
    command = pager_command()
    if not (wanted and is_terminal) or not command or command == ["cat"] or not shutil.which(command[0]):
        yield is_terminal
        return
    pager = subprocess.Popen(
        command, stdin=subprocess.PIPE, env={**_OPTIONS, **os.environ}, encoding="utf-8", errors="backslashreplace"
    )
    terminal, sys.stdout = sys.stdout, pager.stdin
    try:
        with suppress(BrokenPipeError):  # the user has left the pager
            yield True
    finally:
        sys.stdout = terminal
        with suppress(BrokenPipeError):
            assert pager.stdin is not None
            pager.stdin.close()
        _wait(pager)


def pager_command() -> list[str]:
    """Return the words of the pager's command; empty: the user wants none.

    :raises FileError: ``PAGER`` is not a command.
    """
    text = os.environ.get("PAGER", _DEFAULT)
    try:
        return shlex.split(text)
    except ValueError as error:  # a quotation mark without another
        raise FileError(f"PAGER: expected a command, found {text!r}: {error}") from error


def _wait(pager: subprocess.Popen[str]) -> None:
    """Wait for a pager; an interrupt is the pager's, which the user goes on using."""
    while True:
        try:
            pager.wait()
        except KeyboardInterrupt:
            continue
        return
