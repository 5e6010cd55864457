"""What debuggers were given and what they printed: kept in a file for each test that fails."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / ".cache" / "failures"
"""The folder of the files; a test that fails again replaces its own."""
_NAME = 150
"""Maximum length of a file's name, in characters."""

_of_this_test: list[Transcript] = []


class Transcript:
    """The transcript of one session; pexpect can write to it.

    A session may outlive a test.  Each test's file has the whole transcripts of the sessions that were used in it.
    """

    def __init__(self, command: Sequence[object]) -> None:
        self._parts: list[str] = []
        self.write(f"$ {shlex.join(map(str, command))}\n")

    def write(self, text: str | bytes) -> None:
        """Add what was typed or printed."""
        self._parts.append(text if isinstance(text, str) else text.decode(errors="replace"))
        if self not in _of_this_test:
            _of_this_test.append(self)

    def flush(self) -> None:
        """Do nothing; pexpect calls this."""

    @property
    def text(self) -> str:
        """Return the whole transcript."""
        return "".join(self._parts)


def begin() -> None:
    """Begin a test: forget the sessions of the one before."""
    _of_this_test.clear()


def keep(test: str) -> Path | None:
    """Write the transcripts of the test that runs.

    :param test: its name.
    :return: the file; ``None``: the test used no debugger.
    """
    if not _of_this_test:
        return None
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{re.sub(r'[^A-Za-z0-9_.=,+-]+', '_', test.removeprefix('tests/'))[-_NAME:]}.txt"
    file.write_text("\n\n".join(one.text for one in _of_this_test), encoding="utf-8", errors="replace")
    return file
