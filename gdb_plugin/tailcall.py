"""Frames whose caller did not call them: a function between the two ended in a tail call.

GDB shows such functions from the debug information, but only between frames that its own DWARF unwinder unwinds.  To
keep that display, the frame before them is left to it.
"""

from __future__ import annotations

import gdb

from gdb_plugin.memory import read
from sframe_unwind.arch import Arch
from sframe_unwind.errors import MemoryReadError


def may_hide_tail_calls(arch: Arch, start: int, return_address: int) -> bool:
    """Return whether the call before a return address went to another function than the one that starts at ``start``.

    Only direct calls between functions with debug information tell: there, GDB has something to show.
    """
    try:
        target = arch.call_target(read(return_address - arch.call_size, arch.call_size), return_address)
    except MemoryReadError:
        return False
    if target is None or target == start:
        return False
    called = _function_at(target)
    # One function can have its parts in several places (.cold), each with an FDE of its own.
    return called is not None and _function_at(return_address - 1) is not None and called != _function_at(start)


def _function_at(pc: int) -> tuple[str, int] | None:
    block = gdb.block_for_pc(pc)
    while block is not None and (block.function is None or _is_inlined(block)):
        block = block.superblock
    return None if block is None else (block.function.linkage_name, block.start)


def _is_inlined(block: gdb.Block) -> bool:
    outer = block.superblock
    return outer is not None and not outer.is_static and not outer.is_global
