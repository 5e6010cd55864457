"""The modules of the current program space, from ``info files``.

GDB's Python interface has no load addresses.  ``info files`` has: it lists the sections of the executable, the shared
libraries and the vDSO where they are in memory, for a process, a core file and a remote target alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import gdb

from gdb_plugin.memory import read
from sframe_unwind.cfi_ranges import EhFrame, Piece
from sframe_unwind.errors import FormatError, MemoryReadError
from sframe_unwind.image import lazy_memory, read_image
from sframe_unwind.modules import Module
from sframe_unwind.section import Section

_LINE = re.compile(r"^\t0x([0-9a-f]+) - 0x([0-9a-f]+) is (\S+)(?: in (.*))?$", re.MULTILINE)
_EXECUTABLE = re.compile(r"^\t`(.*)', file type", re.MULTILINE)
_CODE = re.compile(r"\.text|\.plt|\.iplt|\.init$|\.fini$")
_PAGE_MASK = ~0xFFF


class SectionPlace(NamedTuple):
    """Where a section is in memory."""

    start: int
    end: int


class GdbModule(Module):
    """A module that also knows where its DWARF CFI is."""

    def __init__(self, name: str, places: dict[str, SectionPlace], byteorder: str) -> None:
        self.places = places
        self.span = min(p.start for p in places.values()), max(p.end for p in places.values())
        self._byteorder = byteorder
        self._eh_frame: EhFrame | None = None
        super().__init__(name, [self.span], self._open)

    def code_size(self) -> int:
        """Return the length in bytes of the sections that hold code, by their usual names."""
        return sum(place.end - place.start for name, place in self.places.items() if _CODE.match(name))

    def has_cfi(self, pc: int) -> bool:
        """Return whether ``.eh_frame`` describes the address.

        :raises FormatError: it is malformed.
        :raises MemoryReadError: it cannot be read.
        """
        if ".eh_frame" not in self.places:
            return False
        if self._eh_frame is None:
            hdr = self.places.get(".eh_frame_hdr")
            self._eh_frame = EhFrame(_piece(self.places[".eh_frame"]), hdr and _piece(hdr), self._byteorder)
        return self._eh_frame.covers(pc)

    def _open(self) -> Section | None:
        place = self.places.get(".sframe")
        if place is not None:
            return Section(lazy_memory(read, place.start, place.end - place.start), place.start)
        # The section headers may have been stripped; the program headers are in memory then.
        try:
            image = read_image(read, self.span[0] & _PAGE_MASK)
        except (FormatError, MemoryReadError):
            return None
        return image.sframe_section(read)


def _piece(place: SectionPlace) -> Piece:
    return Piece(place.start, lazy_memory(read, place.start, place.end - place.start))


def list_modules(byteorder: str) -> list[GdbModule]:
    """Return the modules of the current program space."""
    text = gdb.execute("info files", to_string=True)
    executable = _EXECUTABLE.search(text)
    return [GdbModule(name, places, byteorder) for name, places in _groups(text, executable[1] if executable else "")]


def _groups(text: str, executable: str) -> Iterator[tuple[str, dict[str, SectionPlace]]]:
    current = ""
    places: dict[str, SectionPlace] = {}
    for start, end, section, name in dict.fromkeys(_LINE.findall(text)):  # a remote target lists the executable twice
        # The same section again means that the file is loaded a second time (dlmopen).
        if places and (name != current or (section in places and section.startswith((".sframe", ".text", ".dynamic")))):
            yield current or executable, places
            places = {}
        current = name
        places[section] = SectionPlace(int(start, 16), int(end, 16))
    if places:
        yield current or executable, places
