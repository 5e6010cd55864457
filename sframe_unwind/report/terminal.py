"""Escapes text from files before it is sent to a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return the text with all non-printable characters escaped.

    Symbol and file names can contain any bytes: control characters that move the cursor or set the window title, marks
    that change the direction of writing, and bytes that are not valid text.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
