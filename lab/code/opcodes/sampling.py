"""Finds encodings of opcodes: random operands, of which the disassembler says whether they belong to the opcode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from lab.code.opcodes.disassembled import Decoded, disassembled
from lab.code.opcodes.tables import Opcode

_WANTED = 8
"""Number of encodings of each opcode."""
_TRIED = (48, *(192,) * 5)
"""Numbers of candidates of each opcode that has too few encodings, in each round."""


def samples(machine: str, listed: Sequence[Opcode], random_: Random) -> Mapping[Opcode, list[Decoded]]:
    """Return encodings of opcodes: those with the mnemonic of the table, else those with another name for it."""
    found: dict[Opcode, dict[bytes, Decoded]] = {opcode: {} for opcode in listed}
    others: dict[Opcode, dict[bytes, Decoded]] = {opcode: {} for opcode in listed}
    for tried in _TRIED:
        lacking = [opcode for opcode, known in found.items() if len(known) < _WANTED]
        candidates = [(opcode, opcode.candidate(random_)) for opcode in lacking for _ in range(tried)]
        decoded = disassembled(machine, [candidate for _, candidate in candidates])
        for (opcode, _), one in zip(candidates, decoded):
            if one is not None:
                place = found if opcode.is_named(one.words) else others
                if len(place[opcode]) < _WANTED:
                    place[opcode].setdefault(one.raw, one)
    return {opcode: list((found[opcode] or others[opcode]).values()) for opcode in listed}
