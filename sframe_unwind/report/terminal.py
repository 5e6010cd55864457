"""What comes from a file is not sent to a terminal as it stands."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return a text with everything that is no visible character escaped.

    Symbol and file names can hold anything: control characters that move the cursor or set a title, marks that turn
    the direction of writing, bytes that are no text.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
