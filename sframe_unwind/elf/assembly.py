"""Puts an ELF file of sections together; it has no segments."""

from __future__ import annotations

from collections.abc import Sequence

from sframe_unwind.elf.constants import SHT_STRTAB
from sframe_unwind.elf.records import HEADER_SIZE, FileHeader, SectionHeader, encoded, layout
from sframe_unwind.named_tuple import NamedTuple

_ALIGNMENT = 8


class Part(NamedTuple):
    """A section with its name and contents."""

    name: bytes
    header: SectionHeader
    data: bytes


def plain_header(section_type: int, data: bytes) -> SectionHeader:
    """Return the header of a section that is not loaded."""
    return SectionHeader(type=section_type, size=len(data), alignment=_ALIGNMENT)


def assembled(model: FileHeader, parts: Sequence[Part]) -> bytes:
    """Return a file of the given sections, and of one more with their names.

    :param model: gives what the headers and the sections do not determine, such as machine and byte order.
    :param parts: the sections; the first one is empty, as in each file.
    :raises FileError: see :func:`sframe_unwind.elf.records.encoded`.
    """
    own = b".shstrtab"
    names = b"".join(part.name + b"\0" for part in parts) + own + b"\0"
    body = bytearray(HEADER_SIZE)
    headers: list[SectionHeader] = []
    at = 0
    for name, header, data in (*parts, Part(own, plain_header(SHT_STRTAB, names), names)):
        body += bytes(-len(body) % _ALIGNMENT)
        headers.append(header._replace(name_offset=at, offset=len(body)) if headers else header)
        body += data
        at += len(name) + 1
    body += bytes(-len(body) % _ALIGNMENT)
    size = layout(SectionHeader, model.byteorder).size
    model = model._replace(phoff=0, phnum=0, shoff=len(body), shentsize=size)
    model = model._replace(shnum=len(headers), shstrndx=len(headers) - 1)
    body[:HEADER_SIZE] = encoded([model], model.byteorder)
    return bytes(body) + encoded(headers, model.byteorder)
