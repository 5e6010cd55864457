"""What addresses of a file are called."""

from __future__ import annotations

from sframe_unwind.elf.section_addresses import FileAddress, Layout
from sframe_unwind.elf.symbols import Symbols


def function_name(pc: int, layout: Layout, symbols: Symbols) -> str:
    """Return the name of the function with an address, and the offset from it; empty where no symbol says."""
    found = symbols.find(pc)
    # A symbol without a size reaches to the next one, but not into another section.
    if found is None or layout.spot(found[0].address).section != layout.spot(pc).section:
        return ""
    return symbols.name(pc) or ""


def named(spot: FileAddress, name: str) -> str:
    """Return an address with the name of the function; where it has none, the section can tell what it is."""
    name = name or (f"({spot.section})" if spot.section and not spot.relative else "")
    return f"{spot} {name}".rstrip()
