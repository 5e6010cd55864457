"""Finds the registration lists of a process: by symbol, or from the code of the function that returns the address.

libunwind does not export its list.  It exports ``_U_dyn_info_list_addr``, a function for debuggers to call.  Calling a
function changes the state of a stopped process, so this module decodes the instructions of the function instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import Arch
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.memory import ReadMemory, WordReader
from sframe_unwind.runtime_code.names import LIST_FUNCTION, LIST_SYMBOL

_CODE_SIZE = 24

FindSymbol = Callable[[str], Iterable[int]]
"""Returns the addresses in the process of all symbols with a name.  Several modules may define the symbol."""


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
    """Return the result of a function that only returns the address of a variable; ``None``: the code is different.

    :param code: the first bytes of the function.
    :param address: address of the function.
    :raises MemoryReadError: the function loads its result from memory that cannot be read.
    """
    found = arch.returned_address(code, address)
    if found is None:
        return None
    result, in_memory = found
    result &= ADDRESS_MASK
    return WordReader(read, arch.byteorder)(result) if in_memory else result
