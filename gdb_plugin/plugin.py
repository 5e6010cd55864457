"""Starts the plugin: creates its unwinder, parameters and commands, once in a GDB process."""

from __future__ import annotations

import gdb
from gdb.unwinder import register_unwinder

from gdb_plugin import commands
from gdb_plugin.frame_names import FrameNames
from gdb_plugin.reporting import Reporter, show
from gdb_plugin.session import Session
from gdb_plugin.unwinder import SFrameUnwinder
from sframe_unwind import __version__

_started = False


def start() -> None:
    """Start the plugin; a second call changes nothing."""
    global _started
    if _started:
        return
    if not hasattr(gdb, "PendingFrame") or not hasattr(gdb.PendingFrame, "level"):
        show(f"needs GDB 13 or later, this is GDB {gdb.VERSION}")
        return
    report = Reporter()
    names = FrameNames(gdb.frame_filters)
    session = Session(report, names)
    unwinder = SFrameUnwinder(session, names, report)
    register_unwinder(None, unwinder, replace=True)
    commands.register(unwinder, session)
    session.look_for_kernel()
    gdb.invalidate_cached_frames()
    _started = True
    if report.waits:
        gdb.write(f"sframe-unwind {__version__}: stack frames are unwound from SFrame; see 'help sframe'\n")
