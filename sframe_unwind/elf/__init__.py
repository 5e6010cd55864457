"""ELF: headers and records of files and of loaded objects; sections, relocations, symbols, CFI and archives of files.

:class:`ElfBinary` is one file.  The names of this package are imported when they are first used, because
:mod:`sframe_unwind.image` needs only the headers.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
"""As in :mod:`typing`, which takes longer to import than all that a sleeping plugin needs."""

if TYPE_CHECKING:
    from sframe_unwind.elf.binary import SECTION_NAME, ElfBinary, load, opened, parsed
    from sframe_unwind.elf.machines import machine_number
    from sframe_unwind.elf.reader import PathLike
    from sframe_unwind.elf.records import ProgramHeader, SectionHeader

__all__ = [
    "SECTION_NAME",
    "ElfBinary",
    "PathLike",
    "ProgramHeader",
    "SectionHeader",
    "load",
    "machine_number",
    "opened",
    "parsed",
]

_MODULES = {
    "binary": "SECTION_NAME ElfBinary load opened parsed",
    "machines": "machine_number",
    "reader": "PathLike",
    "records": "ProgramHeader SectionHeader",
}

if not TYPE_CHECKING:  # a type checker would take any name for one of the package

    def __getattr__(name: str) -> object:
        module = next((module for module, names in _MODULES.items() if name in names.split()), None)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
        return found
