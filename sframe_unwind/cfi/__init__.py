"""DWARF call frame information: records, instructions and expressions, decoded one function at a time.

It needs nothing but bytes, so it serves a debugger's Python, which has no pyelftools.  The formats are those of
DWARF 5, 6.4 (``.debug_frame``) and of the Linux Standard Base Core Specification 5.0, 10.6 (``.eh_frame``,
``.eh_frame_hdr``).
"""

from __future__ import annotations
