"""Starts the plugin, once in a GDB process."""

from __future__ import annotations

from gdb_plugin.commands import entry
from gdb_plugin.lifecycle.waking import Plugin
from gdb_plugin.version import IS_SUPPORTED, VERSION

_started = False


def start() -> None:
    """Start the plugin; a second call changes nothing."""
    global _started
    if _started:
        return
    if not IS_SUPPORTED:
        from gdb_plugin.interface.reporting import show

        show(f"needs GDB 13 or later, this is GDB {VERSION}")
        return
    plugin = Plugin()
    entry.register(plugin)
    plugin.start()
    _started = True
