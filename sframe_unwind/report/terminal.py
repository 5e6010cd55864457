"""Makes text from files suitable for a terminal: escaped, and not too wide."""

from __future__ import annotations

_CUT = "..."


def shortened(name: str, size: int) -> str:
    """Return a name in at most ``size`` characters, without its middle."""
    if len(name) <= size:
        return name
    kept = size - len(_CUT)
    return f"{name[: kept - kept // 2]}{_CUT}{name[len(name) - kept // 2 :]}"


def printable(text: str) -> str:
    """Return the text with all non-printable characters escaped.

    Symbol and file names can contain any bytes: control characters that move the cursor or set the window title, marks
    that change the direction of writing, and bytes that are not valid text.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
