"""Addresses of symbols, with or without debug information.

GDB evaluates an expression in the selected frame, which it must not access during unwinding.  Since GDB 14, this can be
avoided; with older versions, symbols are looked up at the next stop or prompt.  GDB searches all files for a symbol
that does not exist, so nothing is looked up before it is needed.
"""

from __future__ import annotations

from typing import Any

import gdb

from gdb_plugin.interface.texts import is_in_a_file, path_of
from gdb_plugin.version import LOOKS_UP_WHILE_UNWINDING
from sframe_unwind.debugger.file_check import may_have_symbol
from sframe_unwind.runtime_code.names import JIT_SYMBOL, LIST_FUNCTION, LIST_SYMBOL

_NAMES = (LIST_SYMBOL, LIST_FUNCTION, JIT_SYMBOL)


class Symbols:
    """The symbols of the current program space."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, dict[str, list[int]]]] = {}
        self._wanted: set[int] = set()

    def addresses(self, name: str) -> list[int]:
        """Return the addresses of a function or variable; usually there are none."""
        if LOOKS_UP_WHILE_UNWINDING:
            return address_of(name, global_context=True) if _may_exist(name) else []
        inferior = gdb.selected_inferior()
        self._wanted.add(inferior.num)
        _, found = self._known.get(inferior.num, (None, {}))
        return found.get(name, [])

    def want(self) -> None:
        """Make the next :meth:`look_up` search, although no frame has asked yet."""
        self._wanted.add(gdb.selected_inferior().num)

    def look_up(self, at_stop: bool) -> bool:
        """Look up the requested symbols that are unknown, if there are other files than before.

        :param at_stop: GDB is about to show the place where the process has stopped.
        :return: whether the addresses have changed.
        """
        if not self._wanted:
            return False
        inferior = gdb.selected_inferior()
        if inferior.num not in self._wanted or (at_stop and _may_break(inferior)):
            return False
        self._wanted.discard(inferior.num)
        state = inferior.pid, gdb.objfiles()
        before, known = self._known.get(inferior.num, (None, {}))
        if before == state:
            return False
        found = {name: addresses for name in _NAMES if _may_exist(name) and (addresses := address_of(name))}
        self._known[inferior.num] = state, found
        return found != known


def _may_exist(name: str) -> bool:
    """Return whether a symbol can be in one of GDB's files: GDB sends 34 packets to find that it is in none."""
    paths = filter(None, map(path_of, gdb.objfiles()))
    return any(may_have_symbol(path, name) for path in paths if is_in_a_file(path))


def _may_break(inferior: gdb.Inferior) -> bool:
    """Return whether the connection to a process can break: GDB 13 ends if a lookup at a stop finds it broken."""
    connection = inferior.connection
    return connection is None or connection.type not in ("native", "core")


def address_of(name: str, **how: bool) -> list[int]:
    """Return the address of a function or variable; empty: there is none.

    :param how: arguments of ``gdb.parse_and_eval``.
    """
    try:
        return [int(gdb.parse_and_eval(f"&{name}", **how))]
    except gdb.error:
        return []
