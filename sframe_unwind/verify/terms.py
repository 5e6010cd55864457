"""Terms that the reports of several comparisons share."""

from __future__ import annotations

from enum import Enum
from typing import Any

from sframe_unwind.elf.section_addresses import FileAddress
from sframe_unwind.named_tuple import NamedTuple


class Side(str, Enum):
    """The tables with which the machine code agrees."""

    SFRAME = "sframe"
    DWARF = "dwarf"
    ORC = "orc"
    BOTH = "both"
    """Both tables give the same value in different ways."""
    NEITHER = "neither"
    UNKNOWN = "unknown"


SIDES = {
    Side.SFRAME: "the code agrees with SFrame",
    Side.DWARF: "the code agrees with DWARF",
    Side.ORC: "the code agrees with ORC",
    Side.BOTH: "the code agrees with both",
    Side.NEITHER: "the code agrees with neither",
    Side.UNKNOWN: "the code does not tell",
}


class Gap(NamedTuple):
    """Addresses of a function that one of the two tables leaves out."""

    spot: FileAddress
    size: int
    """Size in bytes."""

    def __str__(self) -> str:
        return f"{self.spot}..{self.spot.address + self.size:#x}"

    def to_json(self) -> dict[str, Any]:
        """Return the object of ``verify --json``."""
        return {"address": self.spot.address, "section": self.spot.section, "size": self.size}
