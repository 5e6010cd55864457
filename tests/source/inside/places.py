"""Asks GDB about addresses: source file, line, and the functions that were inlined there."""

from __future__ import annotations

from typing import Any

import gdb

from tests.gdb.inside.program import execute


def collect(executable: str, start: int, end: int) -> list[list[Any]]:
    """Return for each address the functions, from the innermost outward, and file and line."""
    execute(f'file "{executable}"')
    found = []
    for address in range(start, end):
        place, block, names = gdb.find_pc_line(address), gdb.block_for_pc(address), []
        while block is not None and not block.is_global and not block.is_static:
            names += [block.function.name] if block.function is not None else []
            block = block.superblock
        file = place.symtab.fullname() if place.symtab is not None else None
        found.append([names, file, place.line])
    return found
