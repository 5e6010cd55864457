"""Folders in the checkout's `.cache` that are made once."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from pathlib import Path
from typing import Callable


def kept(folder: Path, make: Callable[[Path], None]) -> Path:
    """Have a folder made if it is not there, whole or not at all; return its path.

    One process makes it, and others wait.

    :param make: fills an empty folder.  What it raises is raised.
    """
    if folder.exists():  # also in a checkout that this user may only read
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            for leftover in folder.parent.glob(f"{folder.name}.partial-*"):  # of a process that was killed
                shutil.rmtree(leftover, ignore_errors=True)
            temporary = Path(tempfile.mkdtemp(prefix=f"{folder.name}.partial-", dir=folder.parent))
            try:
                temporary.chmod(0o755)
                make(temporary)
                temporary.rename(folder)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    return folder
