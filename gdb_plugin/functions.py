"""Where functions begin, as GDB sees it."""

from __future__ import annotations

import gdb


def entry_of(address: int) -> int | None:
    """Return the entry of the function around an address, ``None`` where no debug information tells.

    A function can have its parts in several places (``.cold``), each with unwind data of its own; it is one function
    all the same, and so are GDB's frames of it.  GDB looks the address up itself before it asks an unwinder, so this
    costs it nothing and can be done in the middle of unwinding.
    """
    try:
        block = gdb.block_for_pc(address)
        while block is not None and (block.function is None or _is_inlined(block)):
            block = block.superblock
        if block is None:
            return None
        start = block.function.value().address
    except (gdb.error, RuntimeError):
        return None
    return None if start is None else int(start)


def _is_inlined(block: gdb.Block) -> bool:
    outer = block.superblock
    return outer is not None and not outer.is_static and not outer.is_global
