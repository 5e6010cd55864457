"""Walks frames like gdb-dashboard's panes: outward and inward by turns from the selected frame, in every thread.

Modelled on gdb-dashboard's modules Stack, Threads, Variables and Assembly.
"""

from __future__ import annotations

import gdb
from gdb.FrameDecorator import FrameDecorator

LIMIT = 10


def say(line: str) -> None:
    gdb.write(line + "\n")


def stack() -> None:
    """Print the frames around the selected one, with the results of `FrameDecorator`."""
    frames = [gdb.selected_frame()]
    outwards = True
    while len(frames) < LIMIT:
        found = frames[-1].older() if outwards else frames[0].newer()
        if found:
            frames.insert(len(frames) if outwards else 0, found)
        elif not (frames[0].newer() if outwards else frames[-1].older()):
            break
        outwards = not outwards
    for frame in frames:
        decorator = FrameDecorator(frame)
        mark = "*" if frame == gdb.selected_frame() else " "
        say(f"{mark} {frame.pc():#x} {decorator.function()} {decorator.line()}")
        for kind, entries in (("arg", decorator.frame_args()), ("loc", decorator.frame_locals())):
            for entry in entries or []:
                say(f"    {kind} {entry.sym} = {entry.sym.value(frame)}")


def threads() -> None:
    """Switch to every thread and print its innermost frame; then select the first one again."""
    thread, frame = gdb.selected_thread(), gdb.selected_frame()
    for each in sorted(gdb.selected_inferior().threads(), key=lambda entry: int(entry.num)):
        each.switch()
        newest = gdb.newest_frame()
        say(f"[{each.num}] {newest.pc():#x} {newest.name()}")
    thread.switch()
    frame.select()


def code() -> None:
    """Print the instructions around the pc, and the start of the frame's function."""
    frame = gdb.selected_frame()
    for instruction in frame.architecture().disassemble(frame.pc(), count=3):
        say(f"    {instruction['addr']:#x} {instruction['asm']}")
    function = frame.function()
    say(f"    {function} from {function.symtab.filename if function else ''}")


def on_stop(event: gdb.StopEvent | None) -> None:
    """Draw the panes; a pane that fails prints an error, as in gdb-dashboard."""
    for pane in (stack, threads, code):
        try:
            pane()
        except Exception as error:  # noqa: BLE001 - as the plugin does it
            say(f"cannot display {pane.__name__}: {error}")


gdb.events.stop.connect(on_stop)
