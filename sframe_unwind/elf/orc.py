"""The ORC of a vmlinux or of a kernel module."""

from __future__ import annotations

from sframe_unwind.elf.contents import Reader
from sframe_unwind.elf.relocation import Relocations
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.errors import FileError
from sframe_unwind.orc import OrcTable, layout_of

_ADDRESSES, _ENTRIES, _HEADER = ".orc_unwind_ip", ".orc_unwind", ".orc_header"
_MACHINE = "EM_X86_64"
"""The only machine whose ORC this package decodes."""


def orc_of(reader: Reader, layout: Layout, relocations: Relocations) -> OrcTable | None:
    """Return the ORC of a file; ``None``: it has none.

    :param layout: the addresses of the sections.
    :raises FileError: the file is malformed, or for another machine.
    :raises FormatError: the table is malformed.
    """
    named = {section.name: section for section in reader.sections if section.has_contents}
    if _ADDRESSES not in named or _ENTRIES not in named:
        return None
    if reader.machine != _MACHINE:
        raise FileError(f"the layout of ORC for {reader.machine} is not known")
    addresses = named[_ADDRESSES]
    header = relocations.contents(named[_HEADER]) if _HEADER in named else None
    start = layout.addresses[addresses.number]
    entries = relocations.contents(named[_ENTRIES])
    return OrcTable(relocations.contents(addresses), start, entries, layout_of(header))
