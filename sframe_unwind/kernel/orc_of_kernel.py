"""Finds the ORC of a kernel, by the symbols around its sections."""

from __future__ import annotations

from sframe_unwind.kernel.entry_code import FindSymbol
from sframe_unwind.memory import ReadMemory
from sframe_unwind.orc import HASH_SIZE, OrcTable, layout_of

_ADDRESSES = ("__start_orc_unwind_ip", "__stop_orc_unwind_ip")
_ENTRIES = ("__start_orc_unwind", "__stop_orc_unwind")
_HEADER = "__start_orc_header"
_THUNKS = ("__indirect_thunk_start", "__indirect_thunk_end")
"""The code between these symbols jumps to an address in a register, with a stack as at a call.  Before Linux 6.4, ORC
can only mark it as the end of the stack."""


def find_orc(symbol: FindSymbol, read: ReadMemory) -> OrcTable | None:
    """Return the ORC of a kernel; ``None``: it has none.

    :raises MemoryReadError: it cannot be read.
    :raises FormatError: it is malformed.
    """
    start, stop, entries, end = (symbol(name) for name in (*_ADDRESSES, *_ENTRIES))
    if start is None or stop is None or entries is None or end is None:
        return None
    header = symbol(_HEADER)
    layout = layout_of(None if header is None else read(header, HASH_SIZE))
    first, last = (symbol(name) or 0 for name in _THUNKS)
    return OrcTable(read(start, stop - start), start, read(entries, end - entries), layout, (first, last))
