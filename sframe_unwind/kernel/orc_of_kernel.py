"""The ORC of a kernel, by the symbols around its sections."""

from __future__ import annotations

from sframe_unwind.kernel.entry_code import FindSymbol
from sframe_unwind.memory import ReadMemory
from sframe_unwind.orc import OrcLayout, OrcTable

_ADDRESSES = ("__start_orc_unwind_ip", "__stop_orc_unwind_ip")
_ENTRIES = ("__start_orc_unwind", "__stop_orc_unwind")
_HEADER = "__start_orc_header"


def find_orc(symbol: FindSymbol, read: ReadMemory) -> OrcTable | None:
    """Return the ORC of a kernel; ``None``: it has none.

    :raises MemoryReadError: it cannot be read.
    :raises FormatError: it is malformed.
    """
    start, stop, entries, end = (symbol(name) for name in (*_ADDRESSES, *_ENTRIES))
    if start is None or stop is None or entries is None or end is None:
        return None
    layout = OrcLayout.WITH_END if symbol(_HEADER) is None else OrcLayout.WITH_HEADER
    return OrcTable(read(start, stop - start), start, read(entries, end - entries), layout)
