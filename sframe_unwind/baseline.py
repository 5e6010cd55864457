"""A baseline: findings that are known, so that only new ones count.

A finding counts as known if the baseline has one of the same rule for the same file and function.  Addresses and
offsets do not count, because they change with every build.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from sframe_unwind.errors import FileError
from sframe_unwind.named_tuple import NamedTuple

_VERSION = 1


class Key(NamedTuple):
    """The parts by which a finding is recognised."""

    file: str
    """Name of the file: as the user named it, or as it was found in a named directory or archive."""
    rule: str
    """The broken rule, as the command names it: ``SF030``."""
    where: str
    """Name of the function, or its address if it has none; empty: the finding concerns the section."""


def _format(command: str) -> str:
    return f"sframe-unwind {command} baseline"


def read(path: str, command: str) -> frozenset[Key]:
    """Read a baseline.

    :param command: the command that found them: ``lint`` or ``verify``.
    :raises FileError: the file cannot be read, or is not a baseline of that command.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: not a baseline: {error}") from error
    try:
        edition = content[_format(command)]
        if edition != _VERSION:
            raise FileError(f"{path}: a baseline of version {edition}, expected {_VERSION}")
        return frozenset(Key(str(entry["file"]), str(entry["rule"]), str(entry["where"])) for entry in content["known"])
    except (KeyError, TypeError) as error:
        raise FileError(f"{path}: not a baseline: no {error}") from error


def to_text(known: Iterable[Key], command: str) -> str:
    """Return a baseline that accepts some findings."""
    content = {_format(command): _VERSION, "known": [entry._asdict() for entry in sorted(known)]}
    return json.dumps(content, indent=1) + "\n"
