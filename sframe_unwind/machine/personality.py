"""Finds out whether debuggers can turn address space randomisation off for the programs that they start.

They do that by ``personality(2)``, which containers refuse by default (Docker's seccomp profile).  GDB then prints a
warning and goes on.  LLDB does not start the program unless ``target.disable-aslr`` is false.
"""

from __future__ import annotations

import os

LLDB_SETTING = "settings set target.disable-aslr false"
"""The command of LLDB after which it starts programs where ``personality`` is refused."""

GDB_SETTING = "set disable-randomization off"
"""The command of GDB after which it does not warn there."""

_ADDR_NO_RANDOMIZE = 0x0040000
_QUERY = 0xFFFFFFFF
"""The argument with which ``personality`` returns the present value and changes nothing."""


def refusal() -> str | None:
    """Return why this process may not turn address space randomisation off; ``None``: it may.

    The function tries it, and then restores the personality of the calling thread.
    """
    try:
        import ctypes

        personality = ctypes.CDLL(None, use_errno=True).personality
    except (ImportError, OSError, AttributeError):  # not Linux, or a Python without ctypes: nothing is known
        return None
    personality.argtypes = (ctypes.c_ulong,)
    before = personality(_QUERY)
    if before == -1 or personality(before | _ADDR_NO_RANDOMIZE) == -1:
        return os.strerror(ctypes.get_errno())
    personality(before)
    return None


def gdb_settings() -> tuple[str, ...]:
    """Return the commands without which GDB warns when it starts a program; mostly none."""
    return (GDB_SETTING,) if refusal() else ()


def lldb_settings() -> tuple[str, ...]:
    """Return the commands that LLDB needs on this machine before it starts a program; mostly none."""
    return (LLDB_SETTING,) if refusal() else ()
