"""What the plugin does at a stop of a target in which SFrame changes stacks, before a command shows it."""

from __future__ import annotations

import lldb

from lldb_plugin.lifecycle import renewal, stop_hooks
from lldb_plugin.lifecycle.shown_frames import fetch
from lldb_plugin.lifecycle.targets import fit
from lldb_plugin.session import SESSION


def at_stop(context: lldb.SBExecutionContext) -> None:
    """Register or remove the provider as needed, and complete what could not be done when LLDB asked for frames."""
    target = context.GetTarget()
    fit(target, has_frames=True)
    renewal.now(target)
    fetch(context.GetThread())
    if SESSION.is_off() or SESSION.leaves_frames_alone(target.GetProcess()):
        stop_hooks.need_no_more(target)
    else:
        stop_hooks.need(target)
