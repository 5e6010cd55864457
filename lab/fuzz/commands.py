"""Runs commands in this process on damaged files, and checks the properties that any output must have."""

from __future__ import annotations

import argparse
import functools
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest

from lab.fuzz.target import WrongAnswerError
from sframe_unwind import cli
from sframe_unwind.cli.status import OUT_OF_MEMORY
from sframe_unwind.internal_error import PREFIX, TRACEBACK

_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
_REMARKS = ("backtrace", "perf")
"""Commands that report skipped data on standard error, and continue."""


class _NotPrintedError(AssertionError):
    """The output is not permitted."""


_make_parser = cli.parser


@functools.cache
def _parser_of(command: str) -> argparse.ArgumentParser:
    """Return the parser of a command; making it takes as long as running the command on a small file."""
    return _make_parser([command])


def _parser(wanted: Sequence[str]) -> argparse.ArgumentParser:
    return _parser_of(wanted[0])


@contextmanager
def quick() -> Iterator[None]:
    """Let each command use cached parsers, and print the traceback of an internal error."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(cli, "parser", _parser)
        changed.setenv(TRACEBACK, "1")
        yield


def run(seen: Counter[str], command: str, *arguments: object) -> tuple[int, str]:
    """Run a command; return its exit status and its output.

    :param seen: counts the exit statuses.
    :raises WrongAnswerError: an internal error, or an undocumented exit status or output.
    """
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = cli.main([command, *map(str, arguments)])
    seen[f"{command}: {status}"] += 1
    if PREFIX in err.getvalue() or OUT_OF_MEMORY in err.getvalue():
        raise WrongAnswerError(f"{command}: {err.getvalue()[-2000:]}")
    if status not in (0, 1, 2) or ((status == 2) != bool(err.getvalue()) and command not in _REMARKS):
        raise WrongAnswerError(f"{command}: status {status}, {err.getvalue()[:200]!r} on standard error")
    for text in (out.getvalue(), err.getvalue()):
        if not text.replace("\n", "").isprintable():
            raise _NotPrintedError(f"{command}: {next(c for c in text if not c.isprintable() and c != chr(10))!r}")
    if "--json" in arguments and (status != 2 or out.getvalue()):
        json.loads(out.getvalue())
    return status, out.getvalue()


def check_page(text: str) -> None:
    """Check that a browser can read the data of a page."""
    found = _DATA.findall(text)
    if len(found) != 1 or "<" in found[0]:
        raise _NotPrintedError("the page has no data, or what ends it")
    json.loads(found[0])
