"""The version of the running GDB, and the machines that its own unwinder does not know well enough."""

from __future__ import annotations

import gdb


def major(version: str) -> int:
    """Return the first number of a version: 16 for ``16.3`` and for ``16.3.0.20250420-git``."""
    return int(version.partition(".")[0])


def native_fails(number: int) -> tuple[str, ...]:
    """Return the architectures whose return address GDB's own unwinder cannot always find although there is CFI.

    On s390x, GDB 13 and 16 report that one in a floating-point register cannot be converted to an integer, and that one
    in r14 of a signal frame's caller has been optimized out.  GDB 18 finds both.

    :param number: the first number of GDB's version.
    """
    return () if number >= 18 else ("s390x",)


MAJOR = major(gdb.VERSION)
NATIVE_FAILS = native_fails(MAJOR)
