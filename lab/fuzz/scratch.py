"""A folder in memory for the files of a campaign."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path


def memory_folder() -> Path:
    """Make a folder, in memory if the system has such a file system; it is removed when the process ends."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="sframe-fuzz-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
