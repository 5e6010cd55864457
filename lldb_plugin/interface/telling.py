"""Shows lines to the user."""

from __future__ import annotations

import sys

from sframe_unwind.report.terminal import printable

_reported: set[str] = set()


def report(line: str) -> None:
    """Show one line to the user, once."""
    if line not in _reported:
        _reported.add(line)
        tell(line)


def tell(line: str) -> None:
    """Show one line to the user."""
    print(f"sframe: {printable(line)}", file=sys.stderr)
