"""Reads the lines of standard input as they arrive."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from sframe_unwind.errors import FileError

_AT_ONCE = 1 << 20
"""Maximum number of bytes to read at once."""


def arriving_lines() -> Iterator[list[str]]:
    """Yield the lines of standard input without their ends; those that have arrived are yielded at once.

    So a program, or a person at a terminal, that asks and waits gets an answer.  Bytes that are not UTF-8 become
    escapes, as in the names of symbols.

    :raises FileError: standard input is closed or cannot be read.
    """
    if sys.stdin is None:
        raise FileError("standard input is closed")
    begun: list[bytes] = []
    while True:
        try:
            chunk = os.read(sys.stdin.fileno(), _AT_ONCE)
        except OSError as error:
            raise FileError(f"cannot read standard input: {error.strerror or error}") from None
        lines, end, rest = chunk.rpartition(b"\n")
        if end or not chunk:
            yield _split(b"".join([*begun, lines]).decode("utf-8", "backslashreplace"))
            begun = []
        if not chunk:
            return
        begun.append(rest)


def _split(text: str) -> list[str]:
    if "\r" in text:
        text = text.replace("\r\n", "\n").removesuffix("\r")
    return text.split("\n") if text else []
