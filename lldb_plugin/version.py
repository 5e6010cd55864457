"""The version of the running LLDB, where no attribute of its API shows a difference."""

from __future__ import annotations

import re

import lldb

MAJOR = int((re.search(r"version (\d+)", lldb.SBDebugger.GetVersionString()) or [0, 0])[1])
"""The first part of the version; 0: unknown."""

TAKES_FRAMES = hasattr(lldb.SBTarget, "RegisterScriptedFrameProvider")
"""Whether frames can be a plugin's; LLDB 22 is the first version in which they can."""

CAN_RENEW = MAJOR >= 23
"""Whether frames may be replaced at any time: LLDB 22 crashes if another thread prints one of them."""
