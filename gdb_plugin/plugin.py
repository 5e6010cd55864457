"""Starts the plugin: creates its unwinder, parameters and commands, once in a GDB process."""

from __future__ import annotations

import re

import gdb
from gdb.unwinder import register_unwinder

from gdb_plugin import commands
from gdb_plugin.frame_names import FrameNames
from gdb_plugin.session import Session
from gdb_plugin.unwinder import SFrameUnwinder
from sframe_unwind import __version__
from sframe_unwind.debugger.banner import is_read_by_a_person
from sframe_unwind.report.terminal import printable

_FOR_PROGRAMS = re.compile(rb"--?(i(nterpreter)?(=.*)?|batch(-silent)?)", re.DOTALL)
"""Arguments of a GDB whose output a program reads."""

_started = False


def report(line: str) -> None:
    """Show one line to the user, between the lines that GDB prints."""
    gdb.write(f"sframe: {printable(line)}\n", gdb.STDERR)


def start() -> None:
    """Start the plugin; a second call changes nothing."""
    global _started
    if _started:
        return
    if not hasattr(gdb, "PendingFrame") or not hasattr(gdb.PendingFrame, "level"):
        report(f"needs GDB 13 or later, this is GDB {gdb.VERSION}")
        return
    names = FrameNames(gdb.frame_filters)
    session = Session(report, names)
    unwinder = SFrameUnwinder(session, names, report)
    register_unwinder(None, unwinder, replace=True)
    commands.register(unwinder, session)
    session.look_for_kernel()
    gdb.invalidate_cached_frames()
    _started = True
    if is_read_by_a_person(_FOR_PROGRAMS):
        gdb.write(f"sframe-unwind {__version__}: stack frames are unwound from SFrame; see 'help sframe'\n")
