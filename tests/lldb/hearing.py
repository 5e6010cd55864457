"""Lets a program that has loaded a library wait until the plugin has looked at that library."""

from __future__ import annotations

from pathlib import Path

_SCRIPT = """
from lldb_plugin.lifecycle.watching import Watcher
look_at = Watcher._look_at
def looked_at(watcher, target):
    is_there = any(module.file.basename == {library!r} for module in target.module_iter())
    look_at(watcher, target)
    if is_there:
        open({heard!r}, "w").close()
Watcher._look_at = looked_at
"""


def telling(library: str, heard: Path) -> str:
    """Return a command, for use after the plugin is loaded, that makes a file when the plugin has looked at a library.

    :param library: its file name.
    :param heard: the file for which the program waits.
    """
    script = heard.with_suffix(".py")
    script.write_text(_SCRIPT.format(library=library, heard=str(heard)), encoding="utf-8")
    return f"script exec(open({str(script)!r}).read())"
