"""Returns what the plugin decides by GDB's version."""

from __future__ import annotations

from gdb_plugin.version import major, native_fails


def collect(versions: list[str]) -> list[tuple[str, ...]]:
    """Return the architectures on which each version of GDB needs the plugin for return addresses."""
    return [native_fails(major(version)) for version in versions]
