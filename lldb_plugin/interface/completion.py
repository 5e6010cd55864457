"""Makes a module of Python importable in LLDB that pyelftools needs."""

from __future__ import annotations

import importlib
import sys


def import_rlcompleter() -> None:
    """Import ``rlcompleter`` as if there were no ``readline``.

    LLDB's own module ``readline`` lacks a function that ``rlcompleter`` calls when it is imported.  Since Python 3.13,
    ``pdb`` imports ``rlcompleter``, and pyelftools imports ``pdb``.
    """
    hidden = sys.modules.get("readline")
    if "rlcompleter" in sys.modules or hidden is None or hasattr(hidden, "set_completer"):
        return
    sys.modules["readline"] = None  # type: ignore[assignment]  # the interpreter's way to refuse a module
    try:
        importlib.import_module("rlcompleter")
    finally:
        sys.modules["readline"] = hidden
