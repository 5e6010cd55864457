"""DWARF call frame information: records, instructions and expressions, decoded one function at a time.

It needs only bytes.  The formats are defined by DWARF 5,
6.4 (``.debug_frame``) and by the Linux Standard Base Core Specification 5.0, 10.6 (``.eh_frame``, ``.eh_frame_hdr``).
"""

from __future__ import annotations
