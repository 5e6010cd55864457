"""The modules of the current program space, from ``info files``.

GDB's Python interface has no load addresses.  ``info files`` has: it lists the sections of the executable, the shared
libraries and the vDSO where they are in memory, for a process, a core file and a remote target alike.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import gdb

from gdb_plugin.memory import read
from gdb_plugin.reentrancy import output_of
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import CfiSection, SectionData
from sframe_unwind.errors import FormatError, MemoryReadError
from sframe_unwind.image.eh_frame import eh_frame_in
from sframe_unwind.image.elf_image import read_image
from sframe_unwind.image.link_map import EXECUTABLE, Loaded, loaded_image_at, loaded_images
from sframe_unwind.memory import STRUCT_MARKS, ChunkCache, lazy_memory
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Module

_LINE = re.compile(r"^\t0x([0-9a-f]+) - 0x([0-9a-f]+) is (\S+)(?: in (.*))?$", re.MULTILINE)
_EXECUTABLE = re.compile(r"^\t`(.*)', file type", re.MULTILINE)
_OF_CORE = re.compile(r"load\d+[a-z]?$")
"""Names of the pieces of memory that a core file has: they are no module's."""
_CODE = re.compile(r"\.text|\.plt|\.iplt|\.init$|\.fini$")
_AUXV = re.compile(r"^(\d+)\s.*\s(0x[0-9a-f]+|\d+)$", re.MULTILINE)
_PAGE_MASK = ~0xFFF


class GdbModule(Module):
    """A module whose file GDB has, and with it the CFI."""


class SectionPlace(NamedTuple):
    """Where a section is in memory."""

    start: int
    end: int


def list_modules(arch: Arch, may_execute: bool) -> list[Module]:
    """Return the modules of the current program space.

    :param may_execute: whether a GDB command can be run; else the memory of the process tells, if it can.
    """
    if not may_execute:
        return list(_in_memory(arch, may_execute, GdbModule))
    text = output_of("info files")
    files = _EXECUTABLE.findall(text)  # a core file comes before its executable
    return [_module(name, places, arch) for name, places in _groups(text, files[-1] if files else "")]


def find_module(arch: Arch, may_execute: bool, address: int) -> Module | None:
    """Return the shared library at an address without listing all, ``None`` where it cannot be found like that."""
    if gdb.solib_name(address) is None:
        return None
    found = loaded_image_at(read, _auxiliary_vector(arch, may_execute), arch.byteorder, address)
    return None if found is None else _of_image(GdbModule, arch, found)


def discover_modules(arch: Arch, may_execute: bool) -> list[Module]:
    """Return the modules that the process has in memory, whether or not GDB has their files."""
    return list(_in_memory(arch, may_execute, Module))


def _in_memory(arch: Arch, may_execute: bool, kind: type[Module]) -> Iterator[Module]:
    for image in loaded_images(ChunkCache(read).read, _auxiliary_vector(arch, may_execute), arch.byteorder):
        yield _of_image(kind, arch, image)


def _of_image(kind: type[Module], arch: Arch, loaded: Loaded) -> Module:
    name, image = loaded.name, loaded.image
    if name == EXECUTABLE:
        name = gdb.current_progspace().filename or EXECUTABLE
    load, load_cfi = partial(image.sframe_section, read), partial(eh_frame_in, image, read, arch)
    return kind(name, image.code_ranges(), load, load_cfi)


def _auxiliary_vector(arch: Arch, may_execute: bool) -> dict[int, int]:
    """Return the auxiliary vector of the current inferior, empty where it cannot be had."""
    inferior = gdb.selected_inferior()
    if inferior.connection is not None and inferior.connection.type == "native":
        try:
            content = Path(f"/proc/{inferior.pid}/auxv").read_bytes()
        except OSError:
            return {}
        pair = struct.Struct(STRUCT_MARKS[arch.byteorder] + "QQ")
        return dict(pair.iter_unpack(content[: len(content) // pair.size * pair.size]))
    try:
        text = output_of("info auxv") if may_execute else ""
    except gdb.error:
        return {}
    return {int(key): int(value, 0) for key, value in _AUXV.findall(text)}


def _module(name: str, places: dict[str, SectionPlace], arch: Arch) -> Module:
    span = min(place.start for place in places.values()), max(place.end for place in places.values())

    def load() -> Section | None:
        place = places.get(".sframe")
        if place is not None:
            return Section(lazy_memory(read, place.start, place.end - place.start), place.start)
        # The section headers may have been stripped; the program headers are in memory then.
        try:
            image = read_image(read, span[0] & _PAGE_MASK)
        except (FormatError, MemoryReadError):
            return None
        return image.sframe_section(read)

    def load_cfi() -> CfiSection | None:
        frames, index = (places.get(section) for section in (".eh_frame", ".eh_frame_hdr"))
        return CfiSection(_piece(frames), index and _piece(index), arch) if frames else None

    code_size = sum(place.end - place.start for section, place in places.items() if _CODE.match(section))
    return GdbModule(name, [span], load, load_cfi, code_size)


def _piece(place: SectionPlace) -> SectionData:
    return SectionData(place.start, lazy_memory(read, place.start, place.end - place.start))


def _groups(text: str, executable: str) -> Iterator[tuple[str, dict[str, SectionPlace]]]:
    current = ""
    places: dict[str, SectionPlace] = {}
    for start, end, section, name in dict.fromkeys(_LINE.findall(text)):  # a remote target lists the executable twice
        if not name and _OF_CORE.match(section):
            continue
        # The same section again means that the file is loaded a second time (dlmopen).
        if places and (name != current or (section in places and section.startswith((".sframe", ".text", ".dynamic")))):
            yield current or executable, places
            places = {}
        current = name
        places[section] = SectionPlace(int(start, 16), int(end, 16))
    if places:
        yield current or executable, places
