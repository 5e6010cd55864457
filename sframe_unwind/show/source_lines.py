"""Finds the lines of source to which instructions belong, with their texts if the source files are here."""

from __future__ import annotations

import linecache

from sframe_unwind.elf import PathLike
from sframe_unwind.report.demangle import demangle
from sframe_unwind.report.listing import SourceLine
from sframe_unwind.source.debug_info import DebugInfo, Place


class SourceLines:
    """Finds the places in the source at which instructions begin another line.

    :param path: the file with the debug information.
    """

    def __init__(self, path: PathLike) -> None:
        self._info = DebugInfo(path)

    @property
    def exists(self) -> bool:
        """Whether the file has debug information."""
        return self._info.exists

    def change(self, address: int, previous: tuple[Place, ...]) -> tuple[tuple[Place, ...], tuple[SourceLine, ...]]:
        """Return the places of an instruction, and the lines to show if they are not those of the one before.

        :param previous: the places of the instruction before.
        """
        places = tuple(self._info.places(address))
        if places == previous or not places or not places[0].line:
            return (places or previous), ()
        names = [place.function for place in places]
        return places, tuple(
            SourceLine(
                file=place.file,
                line=place.line,
                # The last one is the function itself, whose name is in the title.
                function=demangle(name) if number < len(names) - 1 else "",
                text=linecache.getline(place.file, place.line).rstrip("\n"),
            )
            for number, (place, name) in enumerate(zip(places, names))
            if number == 0 or place not in previous
        )
