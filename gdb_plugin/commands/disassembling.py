"""The instructions and the lines of source that GDB has for ``sframe disassemble``."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from functools import partial

import gdb

from gdb_plugin.commands.contexts import address_in
from gdb_plugin.commands.stacks import Stacks
from gdb_plugin.interface.texts import text
from gdb_plugin.process.functions import name_around
from sframe_unwind.debugger.disassembling import Instruction, View, lines
from sframe_unwind.errors import SFrameError
from sframe_unwind.report.listing import SourceLine


def disassembled(stacks: Stacks, expression: str, with_source: bool, coloured: bool) -> Sequence[str]:
    """Return the lines of the command.

    :param expression: the address; empty: that of the selected frame.
    :raises gdb.error: there is no frame, or GDB cannot evaluate the expression.
    :raises SFrameError: nothing describes the function, or its code cannot be read.
    """
    marked, here = None, None
    if expression:
        pc = address_in(expression)
        if gdb.selected_thread() is not None and pc == gdb.selected_frame().pc():
            pc, here = stacks.selected()
    else:
        pc, here = stacks.selected()
    if here is not None:
        marked = int(gdb.selected_frame().pc())
    view = View(name_around(pc), partial(_instructions, with_source=with_source), marked, here)
    return lines(stacks.code(), pc, view, coloured)


def _instructions(start: int, end: int, with_source: bool) -> Sequence[Instruction]:
    if gdb.selected_thread() is not None:
        architecture = gdb.selected_frame().architecture()
    else:
        architecture = gdb.selected_inferior().architecture()
    try:
        found = architecture.disassemble(start, end - 1)
    except gdb.MemoryError as error:
        raise SFrameError(f"the code of the function cannot be read: {error}") from error
    return [
        Instruction(
            address=int(one["addr"]),
            size=int(one["length"]),
            text=str(one["asm"]).replace("\t", " "),
            line=_line(int(one["addr"])) if with_source else None,
        )
        for one in found
    ]


def _line(address: int) -> SourceLine | None:
    place = gdb.find_pc_line(address)
    symtab = place.symtab
    if symtab is None or not place.line:
        return None
    file, shown = text(symtab.fullname), text(lambda: symtab.filename)
    return SourceLine(shown, int(place.line), "", linecache.getline(file, place.line).rstrip("\n"))
