"""ELF: headers and records of files and of loaded objects; sections, relocations, symbols, CFI and archives of files.

:class:`ElfBinary` is one file.  The names of this package are imported when they are first used, because
:mod:`sframe_unwind.image` needs only the headers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sframe_unwind.elf._reader import ElfSection, ElfSegment, machine_number
    from sframe_unwind.elf.binary import SECTION_NAME, ElfBinary, load, opened, parsed
    from sframe_unwind.elf.reader import PathLike

__all__ = [
    "SECTION_NAME",
    "ElfBinary",
    "ElfSection",
    "ElfSegment",
    "PathLike",
    "load",
    "machine_number",
    "opened",
    "parsed",
]

_MODULES = {
    "_reader": "ElfSection ElfSegment machine_number",
    "binary": "SECTION_NAME ElfBinary load opened parsed",
    "reader": "PathLike",
}

if not TYPE_CHECKING:  # a type checker would take any name for one of the package

    def __getattr__(name: str) -> object:
        module = next((module for module, names in _MODULES.items() if name in names.split()), None)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
        return found
