"""The modules of the current program space, from ``info files``.

GDB's Python interface has no load addresses.  ``info files`` has: it lists the sections of the executable, the shared
libraries and the vDSO where they are in memory, for a process, a core file and a remote target alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import gdb

from gdb_plugin.memory import read
from gdb_plugin.reentrancy import may_execute
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import CfiSection, SectionData
from sframe_unwind.errors import FormatError, MemoryReadError
from sframe_unwind.image.eh_frame import eh_frame_in
from sframe_unwind.image.elf_image import read_image
from sframe_unwind.image.link_map import EXECUTABLE, loaded_images
from sframe_unwind.memory import ChunkCache, lazy_memory
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


def list_modules(arch: Arch) -> list[Module]:
    """Return the modules of the current program space."""
    text = gdb.execute("info files", to_string=True)
    files = _EXECUTABLE.findall(text)  # a core file comes before its executable
    return [_module(name, places, arch) for name, places in _groups(text, files[-1] if files else "")]


def discover_modules(arch: Arch) -> list[Module]:
    """Return the modules that the process has in memory, whether or not GDB has their files."""
    if not may_execute():
        return []
    try:
        text = gdb.execute("info auxv", to_string=True)
    except gdb.error:
        return []
    auxv = {int(key): int(value, 0) for key, value in _AUXV.findall(text)}
    names = {EXECUTABLE: gdb.current_progspace().filename or EXECUTABLE}
    return [
        Module(
            names.get(name, name),
            image.code_ranges(),
            partial(image.sframe_section, read),
            partial(eh_frame_in, image, read, arch),
        )
        for name, image, _ in loaded_images(ChunkCache(read).read, auxv, arch.byteorder)
    ]


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
