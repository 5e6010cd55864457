"""The facts about GDB that differ from one version to another; the rest of the plugin asks for them by name.

If GDB's Python interface shows a fact, the interface is asked and not the version, because distributions take changes
into older versions.
"""

from __future__ import annotations

import gdb


def major(version: str) -> int:
    """Return the first number of a version: 16 for ``16.3`` and for ``16.3.0.20250420-git``."""
    return int(version.partition(".")[0])


def native_fails(number: int) -> tuple[str, ...]:
    """Return the architectures on which GDB's own unwinder sometimes fails to find the return address by the CFI.

    On s390x, GDB 13 and 16 report that a return address in a floating-point register cannot be converted to an integer,
    and that a return address in r14 of a signal frame's caller has been optimized out.  GDB 18 finds both.

    :param number: the first number of GDB's version.
    """
    return () if number >= 18 else ("s390x",)


VERSION = str(gdb.VERSION)
_MAJOR = major(VERSION)

IS_SUPPORTED = hasattr(gdb, "PendingFrame") and hasattr(gdb.PendingFrame, "level")
"""GDB 13 and later: an unwinder is told the level of a frame."""
TELLS_PC = hasattr(gdb.PendingFrame, "pc") if IS_SUPPORTED else False
"""GDB 14 and later: an unwinder can ask for the pc.  Reading a register takes longer the more frames there are."""
FORMATS_ADDRESSES = hasattr(gdb, "format_address")
"""GDB 14 and later: Python can ask for the symbol at an address.  In GDB 13, only a command tells it."""
LOOKS_UP_WHILE_UNWINDING = _MAJOR >= 14
"""Symbols can be looked up without the selected frame, so during unwinding, too.  GDB 13 crashes with two inferiors."""
TELLS_FREED_FILES = hasattr(gdb.events, "free_objfile")
"""GDB 14 and later: an event tells that GDB is about to free a file."""
READS_VALUES = hasattr(gdb.Value, "bytes")
"""GDB 15 and later: Python can ask for the bytes of a value."""
SHOWS_OUTERMOST = TELLS_PC
"""GDB 14 and later show a frame without a caller's pc as the outermost one; GDB 13 would end the command with an
error."""
REFUSES_INLINED_RETURN = TELLS_PC
"""GDB 14 and later refuse 'return' in each inlined frame; GDB 13 only if the innermost frame is inlined."""
FAILS_AT_VIEWED_FRAMES = not TELLS_PC
"""GDB 13 fails an assertion if an unwinder in Python reads a register of a frame that 'frame view' made."""
NATIVE_FAILS = native_fails(_MAJOR)
"""The architectures on which this GDB's own unwinder fails although there is CFI; see :func:`native_fails`."""
