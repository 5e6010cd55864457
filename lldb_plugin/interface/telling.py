"""Shows lines to the user."""

from __future__ import annotations

import sys
from typing import Callable

from sframe_unwind.report.terminal import printable

Report = Callable[[str], None]
"""Shows one line to the user, once: :meth:`Reporter.report`."""


class Reporter:
    """Shows each line once."""

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def report(self, line: str) -> None:
        """Show one line to the user, unless it has been shown before."""
        if line not in self._reported:
            self._reported.add(line)
            tell(line)


def tell(line: str) -> None:
    """Show one line to the user."""
    print(f"sframe: {printable(line)}", file=sys.stderr)
