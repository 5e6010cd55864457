"""Finds rows that agree with one execution of a function: some hold always, some by chance."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lab.code.executed.judge import Entered
from lab.code.executed.stub import Stopped, Stub
from sframe_unwind.arch import Arch

_MASK = (1 << 64) - 1
_FARTHEST = 640
"""Maximum distance from a register to the CFA, in bytes."""
_WINDOW = 256
"""Number of bytes below the CFA in which a saved register is searched; above it, an eighth of that."""
_RED_ZONES = {"amd64": 128}
"""Number of bytes below the stack pointer that signal handlers preserve."""
_KEPT = 0.9
"""Probability that a rule that still holds is kept."""


class Row(NamedTuple):
    """Directives that give an assembler the rules of one row."""

    cfa: str
    ra: str
    fp: str


class Observer:
    """Finds the rules that hold in a state of a program.

    :param arch: architecture of the registers.
    :param stub: the program in that state.
    """

    def __init__(self, random_: random.Random, arch: Arch, stub: Stub) -> None:
        self._random = random_
        self._arch = arch
        self._stub = stub

    def rows(self, states: Iterable[tuple[Stopped, Entered]]) -> Iterator[tuple[int, Row]]:
        """Yield the address of each state, and a row that holds in it."""
        row = Row("", "", "")
        for at, wanted in states:
            at_cfa = [
                f".cfi_def_cfa {number},{(wanted.cfa - value) & _MASK}"
                for number, value in enumerate(at.registers)
                if (wanted.cfa - value) & _MASK < _FARTHEST
            ]
            saved = self._slots(at, wanted)
            ra = self._arch.return_column
            row = Row(
                self._chosen(at_cfa, (self._arch.sp, self._arch.fp), row.cfa),
                self._chosen(self._places(ra, wanted.ra, at, saved), (ra,), row.ra),
                self._chosen(self._places(self._arch.fp, wanted.fp, at, saved), (self._arch.fp,), row.fp),
            )
            yield at.pc, row

    def _chosen(self, known: list[str], favoured: tuple[int, ...], kept: str) -> str:
        """Return one of the rules that hold; if there is none, the previous rule."""
        if not known or (kept in known and self._random.random() < _KEPT):
            return kept
        usual = [rule for rule in known if rule.split(" ")[1].split(",")[0] in map(str, favoured)]
        return self._random.choice(usual if usual and self._random.random() < _KEPT else known)

    def _slots(self, at: Stopped, wanted: Entered) -> dict[int, list[int]]:
        """Return the distances from the CFA of each word in slots that a signal handler would preserve."""
        low = wanted.cfa - _WINDOW
        raw = self._stub.read(low, _WINDOW + _WINDOW // 8)
        found: dict[int, list[int]] = {}
        used = wanted.cfa - at.registers[self._arch.sp] + _RED_ZONES.get(self._arch.name, 0)
        kept = min(max(0, _WINDOW - used // 8 * 8), len(raw))
        for place in range(kept, len(raw), 8):
            word = int.from_bytes(raw[place : place + 8], self._arch.byteorder)
            found.setdefault(word, []).append(place - _WINDOW)
        return found

    @staticmethod
    def _places(column: int, value: int, at: Stopped, saved: dict[int, list[int]]) -> list[str]:
        """Return the rules that give the value of a register."""
        slots = [f".cfi_offset {column},{distance}" for distance in saved.get(value, ())]
        others = [number for number, held in enumerate(at.registers) if held == value]
        return slots + [
            f".cfi_same_value {column}" if number == column else f".cfi_register {column},{number}" for number in others
        ]
