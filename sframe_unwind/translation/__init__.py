"""Makes unwind tables from others, and compares the two: SFrame from DWARF CFI or from SFrame of another version,
DWARF CFI from SFrame.

It needs nothing but decoded tables, so it serves a debugger's Python, which has no pyelftools.
"""

from __future__ import annotations
