"""The result of comparing the ORC of one file with its SFrame or DWARF CFI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sframe_unwind.code.judge.findings import TITLES
from sframe_unwind.elf.section_addresses import FileAddress
from sframe_unwind.errors import counted
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.verify.terms import SIDES, Gap, Side


class OrcDisagreement(NamedTuple):
    """One value in which the two tables differ at one address."""

    pc: int
    spot: FileAddress
    function: str
    """Name of the function and offset from its start; empty: no symbol covers the address."""
    what: str
    """``cfa``, ``ra`` or ``fp``."""
    orc: str
    other: str
    code: Side | None = None
    """The table with which the machine code agrees; ``None``: the code was not checked."""

    def to_json(self) -> dict[str, Any]:
        """Return the object of ``verify --json``."""
        code = {} if self.code is None else {"code": self.code.value}
        place = {"address": self.spot.address, "section": self.spot.section, "function": self.function}
        return {**place, "what": self.what, "orc": self.orc, "other": self.other, **code}


class OrcReport(NamedTuple):
    """The result of comparing ORC with SFrame, or with DWARF CFI if the file has no SFrame."""

    table: str
    """The other table: ``sframe`` or ``dwarf``."""
    both: int
    """Number of functions that both tables describe, at least in part."""
    addresses_compared: int
    disagreements: tuple[OrcDisagreement, ...]
    orc_only: tuple[tuple[str, Gap], ...]
    """Name and place of each function that only ORC describes: code in assembly."""
    other_only: tuple[tuple[str, Gap], ...]
    """Name and place of each function that only the other table describes."""

    def to_json(self) -> dict[str, Any]:
        """Return the object of ``verify --json``."""
        return {
            "with": self.table,
            "both": self.both,
            "addresses_compared": self.addresses_compared,
            "disagreements": [one.to_json() for one in self.disagreements],
            "orc_only": [_json(*one) for one in self.orc_only],
            "other_only": [_json(*one) for one in self.other_only],
        }

    def lines(self, file: str) -> Iterator[str]:
        """Yield the lines that ``verify`` prints."""
        title, count = TITLES[self.table], len(self.disagreements)
        yield (
            f"{file}: {counted(self.both, 'function')} in ORC and {title}, {len(self.orc_only)} in ORC only,"
            f" {len(self.other_only)} in {title} only; {counted(self.addresses_compared, 'address')} compared,"
            f" {counted(count, 'disagreement') if count else 'no disagreements'}"
        )
        for one in self.disagreements:
            side = "" if one.code is None else f"; {SIDES[one.code]}"
            yield f"  {one.spot.with_name(one.function)}: {one.what}: ORC {one.orc}; {title} {one.other}{side}"
        for who, functions in (("ORC", self.orc_only), (title, self.other_only)):
            for name, gap in functions:
                yield f"  {who} only: {gap.spot.with_name(name)}"


def _json(name: str, gap: Gap) -> dict[str, Any]:
    return {**gap.to_json(), "function": name}
