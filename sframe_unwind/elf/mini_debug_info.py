"""Reads ``.gnu_debugdata`` (MiniDebugInfo): an ELF file with the symbols of functions, compressed with xz.

Fedora and its descendants put it into stripped programs and libraries.
"""

from __future__ import annotations

from sframe_unwind.elf._reader import Reader
from sframe_unwind.errors import FileError

_SECTION = ".gnu_debugdata"
_MAX_SIZE = 1 << 26
"""Maximum size of the decompressed file in bytes, ten times the largest one in Fedora.  xz can compress 7,000 to 1."""
_MAX_DICTIONARY = 1 << 27
"""Maximum memory of the decompression in bytes; xz at its strongest needs 65 MiB."""


def embedded_file(reader: Reader) -> bytes:
    """Return the ELF file in ``.gnu_debugdata``; empty: there is none.

    :raises FileError: it cannot be decompressed, or has an implausibly large size.
    """
    section = next((section for section in reader.sections if section.name == _SECTION), None)
    if section is None:
        return b""
    try:
        import lzma  # Python can be built without it
    except ImportError as error:
        raise FileError(f"{_SECTION} cannot be decompressed: {error}") from error
    decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_DICTIONARY)
    try:
        content = decompressor.decompress(reader.contents(section), _MAX_SIZE)
    except lzma.LZMAError as error:
        raise FileError(f"{_SECTION} cannot be decompressed: {error}") from error
    if not decompressor.eof:
        why = f"it has more than {_MAX_SIZE:,} bytes" if len(content) >= _MAX_SIZE else "it ends too early"
        raise FileError(f"{_SECTION} cannot be decompressed: {why}")
    return content
