"""The end of a session at a pseudo-terminal."""

from __future__ import annotations

from typing import Any

import pexpect


def close(child: pexpect.spawn[Any]) -> None:
    """End a program at a pseudo-terminal: it loses the terminal, and is killed where that is not enough.

    pexpect gives a killed program a tenth of a second to end, which a busy machine can exceed.
    """
    try:
        child.close(force=True)
    except pexpect.ExceptionPexpect:
        child.wait()
