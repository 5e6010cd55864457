"""Where a process keeps its lists: by symbol, or from the code of the function that returns the address.

libunwind exports ``_U_dyn_info_list_addr`` for debuggers to call, and not the list.  A debugger that calls into a
stopped process changes it, so the code is read instead.
"""

from __future__ import annotations

import struct
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
    found = _DECODERS[arch.elf_machine](code, address)
    if found is None:
        return None
    place, is_slot = found
    place &= ADDRESS_MASK
    return WordReader(read, arch.byteorder)(place) if is_slot else place


def _amd64(code: bytes, address: int) -> tuple[int, bool] | None:
    start = 4 if code.startswith(b"\xf3\x0f\x1e\xfa") else 0  # endbr64
    if code[start : start + 4] == b"\x55\x48\x89\xe5":  # push %rbp; mov %rsp,%rbp
        start += 4
    operation, offset = code[start : start + 3], struct.unpack_from("<i", code, start + 3)[0]
    kinds = {b"\x48\x8d\x05": False, b"\x48\x8b\x05": True}  # lea, mov offset(%rip),%rax
    if operation in kinds:
        return address + start + 7 + offset, kinds[operation]
    if operation[:2] in (b"\x48\xc7", b"\x48\xb8") or operation[:1] == b"\xb8":
        return _amd64_immediate(code[start:])
    return None


def _amd64_immediate(code: bytes) -> tuple[int, bool] | None:
    """``mov $address,%rax`` in its three lengths, for code that is not position-independent."""
    if code[:3] == b"\x48\xc7\xc0":
        return struct.unpack_from("<i", code, 3)[0], False
    if code[:2] == b"\x48\xb8":
        return struct.unpack_from("<Q", code, 2)[0], False
    return (struct.unpack_from("<I", code, 1)[0], False) if code[:1] == b"\xb8" else None


def _aarch64(code: bytes, address: int) -> tuple[int, bool] | None:
    words = struct.unpack_from("<5I", code)
    start = 1 if words[0] in (0xD503245F, 0xD503233F) else 0  # bti c, paciasp
    first, second = words[start : start + 2]
    if first & 0x9F00001F != 0x90000000:  # adrp x0, page
        return None
    page = ((first >> 5 & 0x7FFFF) << 2 | first >> 29 & 3) << 12
    page = (page ^ 1 << 32) - (1 << 32) + (address + 4 * start & ~0xFFF)
    if second & 0xFFC003FF == 0x91000000:  # add x0, x0, offset
        return page + (second >> 10 & 0xFFF), False
    if second & 0xFFC003FF == 0xF9400000:  # ldr x0, [x0, offset]
        return page + 8 * (second >> 10 & 0xFFF), True
    return None


def _s390x(code: bytes, address: int) -> tuple[int, bool] | None:
    kinds = {b"\xc0\x20": False, b"\xc4\x28": True}  # larl, lgrl %r2,offset
    if code[:2] not in kinds:
        return None
    return address + 2 * struct.unpack_from(">i", code, 2)[0], kinds[code[:2]]


_DECODERS = {"EM_X86_64": _amd64, "EM_AARCH64": _aarch64, "EM_S390": _s390x}
