"""Caches pyelftools' descriptions of ELF's structures for files with equal headers.

Making them takes half of the time of most commands with a small file.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from elftools.elf.structs import ELFStructs


@lru_cache(maxsize=64)
def _made(little_endian: bool, elfclass: int, facts: tuple[object, ...]) -> dict[str, Any]:
    structs = ELFStructs(little_endian, elfclass)
    structs.create_basic_structs()
    if facts:
        structs.create_advanced_structs(*facts)
    return dict(vars(structs))


class KeptStructs(ELFStructs):  # type: ignore[misc]  # pyelftools has no types
    """Structures that are taken from the cache."""

    def create_basic_structs(self) -> None:
        """Provide the structures that all headers share."""
        self.__dict__.update(_made(self.little_endian, self.elfclass, ()))

    def create_advanced_structs(self, *facts: object) -> None:
        """Provide the other structures.

        :param facts: type of the file, machine, and ABI of the system.
        """
        self.__dict__.update(_made(self.little_endian, self.elfclass, facts))
