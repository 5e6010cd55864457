"""Finds the images of a process in its memory, by auxiliary vector, program headers and the dynamic linker's list.

This serves remote targets with a file system that the debugger cannot read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Callable

from sframe_unwind.address import ByteOrder, page_start
from sframe_unwind.elf.constants import DT_DEBUG, DT_NULL, PT_DYNAMIC, PT_LOAD, PT_PHDR
from sframe_unwind.elf.records import HEADER_SIZE, DynamicEntry, ProgramHeader, decoded, layout
from sframe_unwind.errors import FormatError, MemoryReadError
from sframe_unwind.image.elf_image import Image, read_image
from sframe_unwind.memory import STRUCT_MARKS, ReadMemory, read_c_string
from sframe_unwind.named_tuple import NamedTuple

AT_PHDR, AT_PHNUM, AT_BASE, AT_SYSINFO_EHDR = 3, 5, 7, 33
"""Keys of the auxiliary vector: address and number of the program headers of the executable, load address of the
dynamic linker, load address of the vDSO."""

_MAX_ENTRIES = 4096
"""Maximum number of entries of a dynamic section, and of the list, so that reading damaged data ends."""
_MAX_NAME = 4096
_AT_ONCE = 64
"""Number of entries of a dynamic section that one read fetches; each read can cost one packet to a remote target."""


class Loaded(NamedTuple):
    """An image with its name."""

    name: str
    """The name in the dynamic linker's list, or :data:`EXECUTABLE`, ``"vDSO"`` or ``"dynamic linker"``."""
    image: Image
    address: int
    """Address of the first byte."""


EXECUTABLE = "executable"
"""Name of the executable, for which the dynamic linker's list has none."""


def loaded_images(
    read: ReadMemory,
    auxv: Mapping[int, int],
    byteorder: ByteOrder,
    provide: Callable[[str, int], bool] | None = None,
) -> list[Loaded]:
    """Return the images that the process has loaded.  Images that cannot be read are left out.

    :param auxv: the auxiliary vector.
    :param byteorder: ``"little"`` or ``"big"``.
    :param provide: called with name and address of an image that cannot be read.  It may make the memory readable,
        for example from a file; it returns whether it did.
    """
    found: dict[int, Loaded] = {}

    def add(name: str, address: int) -> Image | None:
        if not address or address in found:
            return None
        image = _image(read, address)
        if image is None and provide is not None and provide(name, address):
            image = _image(read, address)
        if image is not None:
            found[address] = Loaded(name, image, address)
        return image

    addresses = _executable_addresses(read, auxv, byteorder)
    executable = next((image for at in addresses if (image := add(EXECUTABLE, at))), None)
    add("vDSO", auxv.get(AT_SYSINFO_EHDR, 0))
    if executable is not None:
        for load_address, name in _link_map(read, executable, byteorder):
            add(read_c_string(read, name, _MAX_NAME), load_address)
    add("dynamic linker", auxv.get(AT_BASE, 0))
    return list(found.values())


def loaded_image_at(read: ReadMemory, auxv: Mapping[int, int], byteorder: ByteOrder, address: int) -> Loaded | None:
    """Return the image in the dynamic linker's list with code at an address; ``None``: there is none.

    Of the other images, only the list entries are read, so this is fast in a process with hundreds of images.
    """
    addresses = _executable_addresses(read, auxv, byteorder)
    executable = next((image for at in addresses if (image := _image(read, at))), None)
    if executable is None:
        return None
    entries = [entry for entry in _link_map(read, executable, byteorder) if entry[0] <= address]
    if not entries:
        return None
    load_address, name = max(entries)
    image = _image(read, load_address)
    if image is None or not any(start <= address < end for start, end in image.code_ranges()):
        return None
    return Loaded(read_c_string(read, name, _MAX_NAME), image, load_address)


def _executable_addresses(read: ReadMemory, auxv: Mapping[int, int], byteorder: ByteOrder) -> Iterator[int]:
    """Yield the possible addresses of the executable's ELF header.

    Its program headers usually follow it.  In some copies, and in files of BOLT, they are elsewhere: then PT_PHDR and
    the first segment tell where the ELF header is.
    """
    headers = auxv.get(AT_PHDR, 0)
    if not headers:
        return
    yield headers - HEADER_SIZE
    yield page_start(headers)
    size = layout(ProgramHeader, byteorder).size
    try:
        table = read(headers, size * min(auxv.get(AT_PHNUM, 0), _MAX_ENTRIES))
    except MemoryReadError:
        return
    segments = list(decoded(ProgramHeader, table, byteorder))
    bias = next((headers - one.address for one in segments if one.type == PT_PHDR), 0)
    first = min(((one.address, one.offset) for one in segments if one.type == PT_LOAD), default=None)
    if first is not None:
        yield bias + first[0] - page_start(first[1])


def _image(read: ReadMemory, address: int) -> Image | None:
    try:
        return read_image(read, address)
    except (FormatError, MemoryReadError):
        return None


def _link_map(read: ReadMemory, executable: Image, byteorder: ByteOrder) -> Iterator[tuple[int, int]]:
    """Yield load address and address of the name of each entry of the dynamic linker's list (``struct link_map``)."""
    word, entry = struct.Struct(STRUCT_MARKS[byteorder] + "Q"), struct.Struct(STRUCT_MARKS[byteorder] + "QQQQ")
    seen: set[int] = set()
    try:
        debug = _debug_address(read, executable, byteorder)
        address = word.unpack(read(debug + 8, 8))[0] if debug else 0
        while address and address not in seen and len(seen) < _MAX_ENTRIES:
            seen.add(address)
            load_address, name, _, following = entry.unpack(read(address, entry.size))
            yield load_address, name
            address = following
    except MemoryReadError:
        return  # the entries before the unreadable one are valid


def _debug_address(read: ReadMemory, executable: Image, byteorder: ByteOrder) -> int:
    """Return the address of the dynamic linker's ``struct r_debug``; 0: the executable has none."""
    size = layout(DynamicEntry, byteorder).size
    for segment in executable.segments:
        if segment.type == PT_DYNAMIC:
            entries = min(segment.memory_size // size, _MAX_ENTRIES)
            for first in range(0, entries, _AT_ONCE):
                data = read(segment.address + first * size, min(entries - first, _AT_ONCE) * size)
                for tag, value in decoded(DynamicEntry, data, byteorder):
                    if tag == DT_DEBUG:
                        return value
                    if tag == DT_NULL:
                        return 0
    return 0
