"""Reads sections that may be compressed, with a limit on their size."""

from __future__ import annotations

from elftools.elf.sections import Section as ElfSection

from sframe_unwind.errors import FileError

_MAX_GROWTH, _ALWAYS = 100, 1 << 20
"""Maximum ratio of the size of a section to its compressed size, and the size in bytes that is always allowed.  The
ratio of real ``.debug_frame`` sections is 3 to 10; zlib can reach 1,000."""


def contents(section: ElfSection) -> bytes:
    """Return the contents of a section, decompressed.

    :raises FileError: the decompressed size is implausibly large.
    """
    size, stored = section.data_size, section["sh_size"]
    if section.compressed and size > max(_MAX_GROWTH * stored, _ALWAYS):
        raise FileError(
            f"{section.name} claims to be {size:,} bytes compressed to {stored:,}, more than {_MAX_GROWTH} to 1"
        )
    return bytes(section.data())
