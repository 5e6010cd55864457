"""Walks frames like GEF's context: at each stop it selects every frame in turn, and shows registers and variables.

Modelled on GEF's `context_trace`, `get_pc_context_info`, `update_registers` and `TraceRunner`-like breakpoints.
"""

from __future__ import annotations

import gdb
from gdb.FrameDecorator import FrameDecorator

REGISTERS = ("$rip", "$rsp", "$rbp", "$rbx", "$r12", "$r13", "$r14", "$r15")


def say(line: str) -> None:
    gdb.write(line + "\n")


def trace() -> None:
    """Select every frame, and print its name, arguments and place."""
    original = gdb.selected_frame()
    frame = gdb.newest_frame()
    while frame:
        frame.select()
        if not frame.is_valid():
            say("no longer valid")
            return
        arguments = FrameDecorator(frame).frame_args() or []
        shown = ", ".join(f"{each.sym}={each.sym.value(frame)!s}" for each in arguments)
        say(f"{frame.pc():#x} -> {frame.name()}({shown}) {frame.find_sal().line}")
        frame = frame.older()
    original.select()


def variables_here() -> None:
    """Print the variables of the blocks around the pc, from the inside out, evaluated as expressions."""
    block = gdb.block_for_pc(gdb.selected_frame().pc())
    while block and not block.is_static:
        for symbol in block:
            if not symbol.is_function and symbol.is_variable:
                value = gdb.parse_and_eval(symbol.name)
                if value.type.code in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_PTR):
                    say(f"  {symbol.name} = {int(value):#x}")
        block = block.superblock


def on_stop(event: gdb.StopEvent) -> None:
    """Print all of this; errors are printed as in GEF."""
    for name in REGISTERS:
        say(f"{name} {gdb.parse_and_eval(name)}")
    for part in (trace, variables_here):
        try:
            part()
        except gdb.error as error:
            say(f"[!] {part.__name__}: {error}")


gdb.events.stop.connect(on_stop)
gdb.events.cont.connect(lambda event: say("going on"))
