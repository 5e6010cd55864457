"""Unwind tables made from others and held against each other: SFrame from DWARF CFI or from SFrame of another version,
DWARF CFI from SFrame.

It needs nothing but decoded tables, so it serves a debugger's Python, which has no pyelftools.
"""

from __future__ import annotations
