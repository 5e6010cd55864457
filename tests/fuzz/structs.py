"""pyelftools' descriptions of ELF's structures, made once for files with equal headers.

To make them takes half of the time of most commands with a small file.
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
    """Takes what was made before."""

    def create_basic_structs(self) -> None:
        """Provide what all headers have in common."""
        self.__dict__.update(_made(self.little_endian, self.elfclass, ()))

    def create_advanced_structs(self, *facts: object) -> None:
        """Provide the rest.

        :param facts: type of the file, machine, and ABI of the system.
        """
        self.__dict__.update(_made(self.little_endian, self.elfclass, facts))
