"""Checks JSON outputs against their schemas: those of every command that a test runs in its own process.

The schemas permit members that they do not name, as a later version may add some.  Here, these are errors too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from sframe_unwind.cli import schema
from sframe_unwind.cli.status import CANNOT


def check(name: str, output: str) -> None:
    """Check an output of a command: a JSON value, or one in each line.

    :param name: the name of the schema.
    """
    for value in _values(output):
        check_value(name, value)


def check_value(name: str, value: Any, definition: str | None = None) -> None:
    """Check a JSON value.

    :param definition: the name of the definition in the schema that applies; ``None``: the whole schema.
    """
    for error in _validator(name, definition).iter_errors(value):
        # Not an assertion: a command would report that as an error of its own.
        pytest.fail(f"schema {name}: {error.json_path}: {error.message[:2000]}")


def checked(run: Callable[[list[str]], int]) -> Callable[[list[str]], int]:
    """Return a function that runs a command like ``run``, and checks the JSON that it prints."""

    def run_and_check(arguments: list[str]) -> int:
        if "--json" not in arguments or arguments[0] not in schema.NAMES:
            return run(arguments)
        stdout = sys.stdout
        copy = sys.stdout = _Copy(stdout)
        try:
            status = run(arguments)
        finally:
            sys.stdout = stdout
        output = "".join(copy.written)
        if output or status != CANNOT:
            check(arguments[0], output)
        return status

    return run_and_check


class _Copy:
    """A stream that keeps what is written to another one."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.written: list[str] = []

    def write(self, text: str) -> int:
        self.written.append(text)
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def strict(part: Any) -> Any:
    """Return a schema, or a part of one, that permits only the members that it names."""
    if isinstance(part, list):
        return [strict(one) for one in part]
    if not isinstance(part, dict):
        return part
    closed = {name: strict(one) for name, one in part.items()}
    if isinstance(part.get("properties"), dict) and part.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed


def _values(output: str) -> list[Any]:
    try:
        return [json.loads(output)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in output.splitlines()]


@cache
def _validator(name: str, definition: str | None) -> Any:
    import jsonschema  # it takes long to import, and few tests need it

    whole = strict(json.loads(schema.text(name)))
    if definition is not None:
        whole = {"$schema": whole["$schema"], "$defs": whole["$defs"], "$ref": f"#/$defs/{definition}"}
    return jsonschema.Draft202012Validator(whole)
