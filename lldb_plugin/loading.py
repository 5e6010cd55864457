"""What makes it cheaper to load modules of the plugin in LLDB's Python."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """Load modules within the block faster: those that are compiled are kept for the next LLDB.

    LLDB sets ``sys.dont_write_bytecode``, whatever the user wants, so each LLDB compiles the modules of a checkout
    anew, which takes as long as all the rest of loading them.  A user who wants no such files sets
    ``PYTHONDONTWRITEBYTECODE``, which ``sys.flags`` tells.
    """
    by_lldb = sys.dont_write_bytecode
    changes = bool(by_lldb and not sys.flags.dont_write_bytecode)
    with no_collection():
        if changes:
            sys.dont_write_bytecode = False
        try:
            yield
        finally:
            if changes:
                sys.dont_write_bytecode = by_lldb


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Turn the collector of cyclic garbage off within the block.

    A deep stack is tens of thousands of objects without cycles, and loaded modules stay.  These would start the
    collector again and again, which took a quarter of the time of a decision, and a tenth of the time of loading.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
