"""Runs a command where the kernel refuses what containers refuse by default: a change of personality, and perf events.

    python -m tests.machine.refusing COMMAND...

It installs a filter of system calls, like Docker's, and replaces itself by the command.  For AMD64.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

REFUSING = (sys.executable, "-m", "tests.machine.refusing")
"""The start of a command line that runs a command there, in the checkout."""

_PERSONALITY, _PERF_EVENT_OPEN = 135, 298
_NUMBER, _FIRST_ARGUMENT = 0, 16
"""Offsets in ``struct seccomp_data``."""
_LOAD, _IF_EQUAL, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000 | errno.EPERM
_QUERY, _ADDR_NO_RANDOMIZE = 0xFFFFFFFF, 0x0040000
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_MODE_FILTER = 2

PROGRAM = (
    (_LOAD, 0, 0, _NUMBER),
    (_IF_EQUAL, 5, 0, _PERF_EVENT_OPEN),
    (_IF_EQUAL, 0, 3, _PERSONALITY),
    (_LOAD, 0, 0, _FIRST_ARGUMENT),
    (_IF_EQUAL, 1, 0, _QUERY),
    (_IF_ANY_BIT, 1, 0, _ADDR_NO_RANDOMIZE),
    (_RETURN, 0, 0, _ALLOW),
    (_RETURN, 0, 0, _FAIL),
)
"""Instructions of BPF: operation, distances of both jumps, operand."""


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("first", ctypes.POINTER(_Instruction)))


def main() -> None:
    """Install the filter, and run the command of the arguments."""
    instructions = (_Instruction * len(PROGRAM))(*(_Instruction(*words) for words in PROGRAM))
    library = ctypes.CDLL(None, use_errno=True)
    described = ctypes.byref(_Filter(len(PROGRAM), instructions))
    if library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or library.prctl(_PR_SET_SECCOMP, _MODE_FILTER, described):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
