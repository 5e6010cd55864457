"""Home folders with init files, as users have them: with the plugin, and without."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tests.gdb import driver as gdb
from tests.lldb import debuggers as lldb


def gdb_environment(home: Path, plugin: bool, more: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment of a GDB whose init file sources the plugin, or does not.

    :param home: becomes a folder with the init file.
    :param more: the last lines of the init file.
    """
    home.mkdir(parents=True)
    lines = [*gdb.SETTINGS, gdb.WITHOUT_DEBUG_FILES, *([f"source {gdb.PLUGIN}"] if plugin else []), *more]
    (home / ".gdbinit").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return _environment(home)


def lldb_environment(home: Path, plugin: bool, more: Sequence[str] = ()) -> dict[str, str]:
    """Return the same for an LLDB."""
    home.mkdir(parents=True)
    settings = ["settings set symbols.enable-external-lookup false", "settings set use-color false"]
    lines = [*settings, *([f'command script import "{lldb.PLUGIN}"'] if plugin else []), *more]
    (home / ".lldbinit").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return _environment(home)


def _environment(home: Path) -> dict[str, str]:
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "LC_ALL": "C.UTF-8", "TERM": "dumb", "HOME": str(home), "SHELL": "/bin/sh"}
