"""An object file with one section."""

from __future__ import annotations

from sframe_unwind.address import ByteOrder
from sframe_unwind.elf.constants import ET_REL, SHF_ALLOC, SHT_STRTAB
from sframe_unwind.elf.records import FileHeader, SectionHeader, encoded, layout

_ALIGNMENT = 8
_NAMES = b"\0.shstrtab\0"


def object_file(
    name: str, section_type: int, data: bytes, address: int, model: FileHeader, byteorder: ByteOrder
) -> bytes:
    """Return an object file with a loaded section whose address is fixed.

    :param model: the file header of a file of the same machine.
    :param byteorder: ``"little"`` or ``"big"``.
    """
    names = _NAMES + name.encode() + b"\0"
    start = layout(FileHeader, byteorder).size
    names_at = start + len(data)
    headers_at = names_at + len(names)
    headers_at += -headers_at % _ALIGNMENT
    sections = [
        SectionHeader(),
        SectionHeader(
            name_offset=len(_NAMES),
            type=section_type,
            flags=SHF_ALLOC,
            address=address,
            offset=start,
            size=len(data),
            alignment=_ALIGNMENT,
        ),
        SectionHeader(
            name_offset=1,
            type=SHT_STRTAB,
            offset=names_at,
            size=len(names),
            alignment=1,
        ),
    ]
    size = layout(SectionHeader, byteorder).size
    header = model._replace(
        type=ET_REL, entry=0, phoff=0, shoff=headers_at, phentsize=0, phnum=0, shentsize=size, shnum=3, shstrndx=2
    )
    body = encoded([header], byteorder) + data + names
    return body + bytes(headers_at - len(body)) + encoded(sections, byteorder)
