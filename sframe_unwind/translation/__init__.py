"""Makes unwind tables from others, and compares the two: SFrame from DWARF CFI or from SFrame of another version,
DWARF CFI from SFrame.

It needs only decoded tables, so it works in a debugger's Python, which has no pyelftools.
"""

from __future__ import annotations
