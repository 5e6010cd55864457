"""Runs the command like a user."""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sframe_unwind.cli import main
from sframe_unwind.errors import MissingExtraError

NOWHERE = ("--debug-dir", "/nonexistent")
"""Options for a folder that does not exist: the C library's debug files may or may not be installed."""
GDB, KERNEL, EMULATOR = "gdb", "kernel", "emulator"
"""The writers of core files."""


class Done(NamedTuple):
    """The result of a command."""

    status: int
    output: str
    errors: str

    @property
    def threads(self) -> dict[str, list[dict[str, Any]]]:
        """Return the frames of each thread, by its id."""
        return {thread["id"]: thread["frames"] for thread in json.loads(self.output)["threads"]}


def backtrace(*arguments: str | Path) -> Done:
    """Run `sframe-unwind backtrace` in this process; an unexpected error is a failure."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            status = main(["backtrace", *map(str, arguments)])
        except SystemExit as ended:  # wrong usage
            status = int(ended.code or 0)
    assert "internal error" not in errors.getvalue(), errors.getvalue()
    return Done(status, output.getvalue(), errors.getvalue())


def without_code_extra(patch: pytest.MonkeyPatch) -> None:
    """Make the extra ``code`` look as if it were not installed."""

    def check() -> None:
        raise MissingExtraError("pyvex")

    patch.setattr("sframe_unwind.code.rows.at_address.check_installed", check)


def unprivileged(*arguments: str | Path) -> Done:
    """Return the command's output for a user without privileges."""
    if os.getuid() != 0:
        return backtrace(*arguments)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setresuid(65534, 65534, 65534)
            os.write(writing, json.dumps(backtrace(*arguments)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    return Done(*json.loads(answer))


def only_line(text: str) -> str:
    """Return the only line of a text."""
    lines = text.splitlines()
    assert len(lines) == 1, text
    return lines[0]


def functions(frames: list[dict[str, Any]]) -> list[str]:
    """Return the functions of a stack, from the innermost outward."""
    return [frame["function"] or "??" for frame in frames]
