"""The start addresses and the names of functions in GDB."""

from __future__ import annotations

import re

import gdb

from gdb_plugin.interface.output import output_of
from gdb_plugin.interface.texts import text
from gdb_plugin.version import FORMATS_ADDRESSES

_FORMATTED = re.compile(r"<([^+>]+)>$")
_AROUND = re.compile(r"<(.+?)(?:\+\d+)?>$")
_LANGUAGES = {"_Z": "c++", "_R": "rust", "_D": "d"}
"""GDB's names of the languages, by the beginning of mangled names."""
_MANGLED = re.compile(rf"(?<=<)(?:{'|'.join(_LANGUAGES)})[^+>]*")
_INFO_SYMBOL_AROUND = re.compile(r"(.+?)(?: \+ \d+)? in section ")
_INFO_SYMBOL = re.compile(r"(?!.* \+ \d+ in section )(.+?) in section ")


def entry_of(address: int) -> int | None:
    """Return the entry of the function around an address; ``None``: there is no debug information for it.

    A function can have parts in several places (``.cold``), each with its own unwind data.  GDB takes them for one
    function, with one entry in the identity of its frames.  GDB itself looks the address up before it asks an unwinder,
    so this is fast and can be done during unwinding.
    """
    try:
        block = _block_around(address)
        if block is None:
            return None
        start = block.function.value().address
    except (gdb.error, RuntimeError):
        return None
    return None if start is None else int(start)


def name_of(address: int) -> str:
    """Return the name of the symbol that begins at an address; empty: none does."""
    if FORMATS_ADDRESSES:
        found = _FORMATTED.search(text(lambda: gdb.format_address(address)))
    else:
        found = _INFO_SYMBOL.match(output_of(f"info symbol {address:#x}"))
    return found[1] if found else ""


def name_around(address: int) -> str:
    """Return the name of the function around an address, ignoring inlined functions; empty: no symbol covers it."""
    block = _block_around(address)
    if block is not None:
        function = block.function
        return text(lambda: function.print_name)
    if FORMATS_ADDRESSES:
        found = _AROUND.search(text(lambda: gdb.format_address(address)))
    else:
        found = _INFO_SYMBOL_AROUND.match(output_of(f"info symbol {address:#x}"))
    return found[1] if found else ""


def place_of(address: int) -> str:
    """Return the symbol around an address and the distance from it, as ``<name+4>``; empty: no symbol covers it."""
    if not FORMATS_ADDRESSES:
        return ""
    place = text(lambda: gdb.format_address(address)).partition(" ")[2]
    return _MANGLED.sub(lambda found: _demangled(found[0]), place)


def _demangled(name: str) -> str:
    """Return a name as the user wrote it."""
    try:
        return output_of(f"demangle -l {_LANGUAGES[name[:2]]} -- {name}").strip()
    except gdb.error:
        return name  # it is not a mangled one


def symbol_at(address: int) -> str:
    """Return the name of the symbol that begins at an address; empty: none does, or GDB cannot be asked now.

    This can be called during unwinding.  Before GDB 14, only a GDB command prints the name, and GDB 13 crashes if
    symbols are looked up during unwinding with two inferiors.
    """
    return name_of(address) if FORMATS_ADDRESSES else ""


def is_entry(address: int) -> bool:
    """Return whether a function is entered at an address, according to debug information or a symbol.

    Code that compilers put elsewhere (``.cold``) is a part of a function.
    """
    entry = entry_of(address)
    if entry is not None:
        return entry == address
    name = symbol_at(address)
    return bool(name) and ".cold" not in name


def _block_around(address: int) -> gdb.Block | None:
    """Return the block of the function around an address, ignoring inlined functions."""
    block = gdb.block_for_pc(address)
    while block is not None and (block.function is None or _is_inlined(block)):
        block = block.superblock
    return block


def _is_inlined(block: gdb.Block) -> bool:
    outer = block.superblock
    return outer is not None and not outer.is_static and not outer.is_global
