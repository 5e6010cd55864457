"""The instructions and the lines of source that LLDB has for ``sframe disassemble``."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from functools import partial
from typing import Callable

import lldb

from lldb_plugin.process.places import Places
from sframe_unwind.debugger.code_judge import ProcessCode
from sframe_unwind.debugger.disassembling import Instruction, View, lines
from sframe_unwind.report.explain import FrameContext
from sframe_unwind.report.listing import SourceLine

Selected = tuple[int, FrameContext]
"""The pc of the selected frame, and its registers."""


def disassembled(
    target: lldb.SBTarget,
    places: Places,
    code: ProcessCode,
    pc: int,
    frame: Selected | None,
    with_source: bool,
    coloured: bool,
) -> Sequence[str]:
    """Return the lines of the command.

    :param pc: lookup address.
    :param frame: the frame with this lookup address; ``None``: the function is not that of a frame.
    :raises SFrameError: nothing describes the function, or its code cannot be read.
    """
    resolved = places.resolve(pc)
    function, symbol = resolved.GetFunction(), resolved.GetSymbol()
    name = function.GetName() if function.IsValid() else symbol.GetName() if symbol.IsValid() else ""
    line_of = partial(_line, places.resolve) if with_source else None
    disassemble = partial(_instructions, target, places, code, line_of)
    marked, here = (None, None) if frame is None else frame
    return lines(code, pc, View(name or "", disassemble, marked, here), coloured)


def _instructions(
    target: lldb.SBTarget,
    places: Places,
    code: ProcessCode,
    line_of: Callable[[int], SourceLine | None] | None,
    start: int,
    end: int,
) -> Sequence[Instruction]:
    found = target.GetInstructions(places.resolve(start), code.read(start, end - start))
    instructions = []
    for one in found:
        address = places.address_of(one.GetAddress())
        comment = one.GetComment(target)
        text = f"{one.GetMnemonic(target)} {one.GetOperands(target)}".strip() + (f"  ; {comment}" if comment else "")
        line = line_of(address) if line_of is not None else None
        instructions.append(Instruction(address, one.GetByteSize(), text, line))
    return instructions


def _line(resolve: Callable[[int], lldb.SBAddress], address: int) -> SourceLine | None:
    entry = resolve(address).GetLineEntry()
    if not entry.IsValid() or not entry.GetLine():
        return None
    file = entry.GetFileSpec()
    text = linecache.getline(file.fullpath or "", entry.GetLine()).rstrip("\n")
    return SourceLine(file.GetFilename() or "", entry.GetLine(), "", text)
