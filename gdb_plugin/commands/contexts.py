"""Asks GDB for the data of contexts that do not run: values of expressions, registers, symbols, names of code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import gdb

from gdb_plugin.interface.texts import path_of
from gdb_plugin.process.functions import name_around
from gdb_plugin.process.modules import auxiliary_vector
from gdb_plugin.process.symbols import address_of
from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.debugger.contexts import Debugger, Name

if TYPE_CHECKING:
    from gdb_plugin.process.process import Process

_AT_RANDOM = 25
"""The entry of the auxiliary vector."""
_CALLS = "may-call-functions"
_OBJECTS = (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION, gdb.TYPE_CODE_ARRAY, gdb.TYPE_CODE_FUNC)
"""Types of expressions that denote the address of their object."""


def debugger(process: Process) -> Debugger:
    """Return the functions by which commands about contexts use GDB."""
    return Debugger(
        address_in,
        _register,
        address_of,
        lambda: auxiliary_vector(process.arch, may_execute=True).get(_AT_RANDOM),
        process.known_kernel,
    )


def address_in(expression: str) -> int:
    """Return an address: the value of an expression, or the address of the structure, array or function it denotes.

    :raises gdb.error: GDB cannot evaluate it, or not without calling a function of the program.
    """
    with _no_calls():
        value = gdb.parse_and_eval(expression)
        if value.type.strip_typedefs().code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
            value = value.referenced_value()
        if value.type.strip_typedefs().code in _OBJECTS:
            if value.address is None:
                raise gdb.error(f"{expression!r} is not in memory")
            value = value.address
        return int(value) & ADDRESS_MASK


def name_of(process: Process, address: int) -> Name:
    """Return the name of the code at an address."""
    module = process.modules.find(address)
    path = module.name if module else ""
    place = Path(path).name
    line = gdb.find_pc_line(address)
    if line.symtab is not None and line.line:
        place = f"{Path(path_of(line.symtab)).name}:{line.line}"
    return Name(name_around(address) or process.run_time_name(address), place, path)


@contextmanager
def _no_calls() -> Iterator[None]:
    before = gdb.parameter(_CALLS)
    gdb.execute(f"set {_CALLS} off", to_string=True)
    try:
        yield
    finally:
        gdb.execute(f"set {_CALLS} {'on' if before else 'off'}", to_string=True)


def _register(name: str) -> int | None:
    try:
        return int(gdb.newest_frame().read_register(name)) & ADDRESS_MASK
    except (gdb.error, ValueError):
        return None
