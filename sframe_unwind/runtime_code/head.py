"""Where a process keeps its lists: by symbol, or from the code of the function that returns the address.

libunwind exports ``_U_dyn_info_list_addr`` for debuggers to call, and not the list.  A debugger that calls into a
stopped process changes it, so the code is read instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import Arch
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.memory import ReadMemory, WordReader

LIST_SYMBOL, LIST_FUNCTION = "_U_dyn_info_list", "_U_dyn_info_list_addr"
JIT_SYMBOL = "__jit_debug_descriptor"

_CODE_SIZE = 24

FindSymbol = Callable[[str], Iterable[int]]
"""Returns the addresses in the process of what has a name; mostly none, several where several modules have it."""


def find_lists(find: FindSymbol, read: ReadMemory, arch: Arch) -> list[int]:
    """Return the addresses of libunwind's lists."""
    found = dict.fromkeys(find(LIST_SYMBOL))
    for function in find(LIST_FUNCTION):
        try:
            address = returned_address(read(function, _CODE_SIZE), function, read, arch)
        except MemoryReadError:
            continue
        if address is not None:
            found[address] = None
    return list(found)


def returned_address(code: bytes, address: int, read: ReadMemory, arch: Arch) -> int | None:
    """Return what a function that only returns the address of a variable returns; ``None``: it is another one.

    :param code: the beginning of the function.
    :param address: where that is.
    :raises MemoryReadError: the address stands in the global offset table, which cannot be read.
    """
    found = arch.returned_address(code, address)
    if found is None:
        return None
    place, is_slot = found
    place &= ADDRESS_MASK
    return WordReader(read, arch.byteorder)(place) if is_slot else place
