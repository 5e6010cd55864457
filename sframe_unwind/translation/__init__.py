"""Makes SFrame from DWARF CFI or another version of SFrame, and DWARF CFI from SFrame; compares result and source.

It needs only decoded tables, not files.
"""

from __future__ import annotations
