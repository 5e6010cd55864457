"""Makes SFrame from DWARF CFI or another version of SFrame, and DWARF CFI from SFrame; compares result and source.

It needs only decoded tables, so it works in a debugger's Python, which has no pyelftools.
"""

from __future__ import annotations
