"""Decides when the plugin is awake, and notices what GDB and its user change."""
