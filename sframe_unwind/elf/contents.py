"""The contents of a section that may be compressed."""

from __future__ import annotations

from elftools.elf.sections import Section as ElfSection

from sframe_unwind.errors import FileError

_MAX_GROWTH, _ALWAYS = 100, 1 << 20
"""A section may become so many times as long as its compressed form, and so many bytes long in any case.  Real
``.debug_frame`` sections become 3 to 10 times as long; zlib can make 1,000 bytes of one."""


def contents(section: ElfSection) -> bytes:
    """Return the contents of a section, decompressed.

    :raises FileError: it would become longer than makes sense.
    """
    size, stored = section.data_size, section["sh_size"]
    if section.compressed and size > max(_MAX_GROWTH * stored, _ALWAYS):
        raise FileError(
            f"{section.name} claims to be {size:,} bytes compressed to {stored:,}, more than {_MAX_GROWTH} to 1"
        )
    return bytes(section.data())
