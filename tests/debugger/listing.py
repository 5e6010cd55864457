"""Reads what `sframe disassemble` prints, for the tests in both debuggers."""

from __future__ import annotations

import re
from typing import NamedTuple

_INSTRUCTION = re.compile(r"([=!?]>|!|\?|) +([0-9a-f]+)  (.*)")
_VALUE = re.compile(r" +CFA = (0x[0-9a-f]+)")


class Shown(NamedTuple):
    """A listing."""

    function: str
    addresses: list[int]
    """Of the instructions."""
    arrows: list[int]
    """The addresses with an arrow."""
    cfa: int | None
    """The value of the CFA; ``None``: there are no values."""
    above_values: int | None
    """The address of the instruction below which the values are."""
    picture: list[str]


def read(text: str) -> Shown:
    """Return what the text of one listing has."""
    rows, _, picture = text.partition("\nthe frame, by ")
    title = re.search(r"0x[0-9a-f]+ <(.*)>, \d+ bytes", rows)
    assert title is not None, text
    addresses, arrows, cfa, above = [], [], None, None
    for line in rows.splitlines():
        if found := _INSTRUCTION.fullmatch(line):
            addresses.append(int(found[2], 16))
            if found[1].endswith(">"):
                arrows.append(addresses[-1])
        elif found := _VALUE.match(line):
            cfa, above = int(found[1], 16), addresses[-1]
    return Shown(
        function=title[1],
        addresses=addresses,
        arrows=arrows,
        cfa=cfa,
        above_values=above,
        picture=picture.splitlines()[1:],
    )
