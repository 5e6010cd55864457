"""The memory of the current inferior in the core's terms."""

from __future__ import annotations

import gdb

from gdb_plugin.version import READS_VALUES
from sframe_unwind.errors import MemoryReadError

_BY_VALUE = 16 << 10 if READS_VALUES else 0
"""Reads up to this number of bytes from a remote target are made as a value, longer ones by ``read_memory``.

If the connection breaks during a read by ``read_memory``, GDB 18 still takes the thread for selected, and the next
command ends GDB with an assertion.
"""
_LOCAL = ("native", "core")
"""Targets whose connection cannot break."""


def read(address: int, size: int) -> bytes:
    """Read ``size`` bytes at an address of the current inferior.

    :raises MemoryReadError: they cannot all be read.
    """
    inferior = gdb.selected_inferior()
    pid = inferior.pid
    try:
        return _read(inferior, address, size)
    except (gdb.error, OverflowError) as error:
        if inferior.pid != pid:
            raise process_gone() from error
        # OverflowError: the address comes from a damaged stack.
        raise MemoryReadError(address, size) from error


class ProcessGoneError(KeyboardInterrupt):
    """The connection to the process broke.

    GDB has dropped its frames, and fails if one of them is used again, which it does when an unwinder returns.  The
    exception of Ctrl-C is the only way out.
    """


def process_gone() -> ProcessGoneError:
    """Tell the user that the connection to the process broke; return the exception to raise, also in an unwinder."""
    gdb.write("sframe: the process is gone, and with it its stack\n", gdb.STDERR)
    return ProcessGoneError()


def _read(inferior: gdb.Inferior, address: int, size: int) -> bytes:
    if 0 < size <= _BY_VALUE and (inferior.connection is None or inferior.connection.type not in _LOCAL):
        try:
            pointer = _pointers.get(size)
            if pointer is None:
                pointer = _pointers[size] = inferior.architecture().integer_type(8, False).array(size - 1).pointer()
            return bytes(gdb.Value(address).cast(pointer).dereference().bytes)
        except gdb.error as error:
            if "max-value-size" not in str(error):  # a setting of the user's
                raise
    return bytes(inferior.read_memory(address, size))


_pointers: dict[int, gdb.Type] = {}
"""Types of pointers to arrays, by number of bytes; making one takes GDB longer than reading through it."""
