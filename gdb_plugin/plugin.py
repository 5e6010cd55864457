"""Starts the plugin, once in a GDB process."""

from __future__ import annotations

import gdb

from gdb_plugin.commands import commands
from gdb_plugin.lifecycle.waking import Plugin

_started = False


def start() -> None:
    """Start the plugin; a second call changes nothing."""
    global _started
    if _started:
        return
    if not hasattr(gdb, "PendingFrame") or not hasattr(gdb.PendingFrame, "level"):
        from gdb_plugin.interface.reporting import show

        show(f"needs GDB 13 or later, this is GDB {gdb.VERSION}")
        return
    plugin = Plugin()
    commands.register(plugin)
    plugin.start()
    _started = True
