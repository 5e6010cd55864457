"""The facts that depend on the version of the running LLDB; no other module asks for the version.

A fact is found by an attribute of LLDB's interface if one shows it, otherwise by the number of the version.
"""

from __future__ import annotations

import re

import lldb

_MAJOR = int((re.search(r"version (\d+)", lldb.SBDebugger.GetVersionString()) or [0, 0])[1])
"""The first part of the version; 0: unknown."""

TAKES_FRAMES = hasattr(lldb.SBTarget, "RegisterScriptedFrameProvider")
"""Whether frames can be a plugin's; LLDB 22 is the first version in which they can."""

CAN_RENEW = _MAJOR >= 23
"""Whether frames may be replaced at any time: LLDB 22 crashes if another thread prints one of them."""

NUMBERS_FRAMES_ANEW = _MAJOR <= 22
"""Whether LLDB numbers the frames of scripts from 0 again whenever it takes further ones
(``SyntheticStackFrameList::FetchFramesUpTo``)."""

TAKES_ALL_FRAMES = NUMBERS_FRAMES_ANEW
"""Whether LLDB must take all frames of a stack at each stop, at 19 microseconds for each."""

WANTS_DECLARED_VARIABLES = _MAJOR <= 22
"""Whether LLDB shows the value of a variable only if the values also include its declaration."""

REMOVES_SIGNATURES = hasattr(lldb.SBValue, "GetValueAsAddress")
"""Whether LLDB can remove the signature of an address; LLDB 15 is the first version that can."""


def takes_registers() -> bool:
    """Return whether LLDB takes registers from frames of a script; that version is also the first to ask for the CFA.

    Call this only in a version that takes frames.
    """
    from lldb.plugins.scripted_process import ScriptedFrame

    return hasattr(ScriptedFrame, "get_cfa")


def lacks() -> str:
    """Return the features that the running LLDB lacks, in words."""
    if not TAKES_FRAMES:
        return "this LLDB has no scripted frame provider (LLDB 22 has): bt is its own, the sframe commands work"
    return "this LLDB has all that the plugin needs"
