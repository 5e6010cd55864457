"""The version of the running LLDB, for what it does not say in another way."""

from __future__ import annotations

import re

import lldb

MAJOR = int((re.search(r"version (\d+)", lldb.SBDebugger.GetVersionString()) or [0, 0])[1])
"""The first part of the version; 0: unknown."""
