"""Names of the types of relocations, from pyelftools, which lists the hundreds of each machine.

Nothing else needs this package, and a debugger's Python may lack it.
"""

from __future__ import annotations

from typing import BinaryIO


class RelocationNames:
    """The names for the machine of a file.

    :param stream: the file, of which pyelftools reads the header.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def name(self, kind: int) -> str:
        """Return the name of a type, such as ``R_X86_64_PLT32``; ``type 4`` without a name or pyelftools."""
        number = f"type {kind}"
        try:
            from elftools.elf.descriptions import describe_reloc_type
            from elftools.elf.elffile import ELFFile
        except ImportError:
            return number
        name = str(describe_reloc_type(kind, ELFFile(self._stream)))
        return name if name.startswith("R_") else number
