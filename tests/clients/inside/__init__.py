"""Plugins for GDB that walk frames as others' plugins do.  They stand for plugins that no package index has.

What they do, not how they look: which of GDB's functions are called, when, and in which order.
"""
