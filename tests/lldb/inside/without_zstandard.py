"""Hides each implementation of Zstandard from LLDB's Python; it is loaded by `command script import`."""

import ctypes
import shutil
import sys
from typing import NoReturn


def _missing(*_: object) -> NoReturn:
    raise OSError("hidden by a test")


def _missing_program(*_: object, **__: object) -> None:
    return None


sys.modules["compression.zstd"] = sys.modules["zstandard"] = None  # type: ignore[assignment]  # an import fails
ctypes.CDLL = _missing  # type: ignore[assignment, misc]
shutil.which = _missing_program
