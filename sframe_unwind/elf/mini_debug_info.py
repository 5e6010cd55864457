"""Reads ``.gnu_debugdata`` (MiniDebugInfo): an ELF file with the symbols of functions, compressed with xz.

Fedora and its descendants put it into stripped programs and libraries.
"""

from __future__ import annotations

from sframe_unwind.elf.contents import Reader
from sframe_unwind.errors import DecompressionError

_SECTION = ".gnu_debugdata"
_MAX_SIZE = 1 << 26
"""Maximum size of the decompressed file in bytes, ten times the largest one in Fedora.  xz can compress 7,000 to 1."""


def embedded_file(reader: Reader) -> bytes:
    """Return the ELF file in ``.gnu_debugdata``; empty: there is none.

    :raises DecompressionError: it cannot be decompressed, or has an implausibly large size.
    """
    section = next((section for section in reader.sections if section.name == _SECTION), None)
    if section is None:
        return b""
    from sframe_unwind.decompression import whole  # few files have such a section

    try:
        return whole("xz", reader.contents(section), _MAX_SIZE)
    except DecompressionError as error:
        raise DecompressionError(f"{_SECTION} cannot be decompressed: {error}") from error
