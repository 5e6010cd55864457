"""Annotated bytes: hexadecimal digits with a comment for each field."""

from __future__ import annotations


def literal(text: str) -> bytes:
    """Return the bytes of lines of hexadecimal digits; text after a `#` is a comment."""
    return bytes.fromhex("".join(line.partition("#")[0] for line in text.splitlines()))
