"""ORC, the unwind table of Linux kernels for AMD64, decoded to the same rules as the other tables.

objtool writes it from the instructions.  ``Documentation/arch/x86/orc-unwinder.rst`` of Linux describes it, and
``arch/x86/include/asm/orc_types.h`` has the layout.
"""

from sframe_unwind.orc.entry import HASH_SIZE, OrcEntry, OrcKind, OrcLayout, layout_of
from sframe_unwind.orc.table import OrcTable

__all__ = ["HASH_SIZE", "OrcEntry", "OrcKind", "OrcLayout", "OrcTable", "layout_of"]
