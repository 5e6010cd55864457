"""What checking tables against the code gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sframe_unwind.code.judgement import PROVED, Judgement, Judgements

SFRAME, DWARF, ORC = "sframe", "dwarf", "orc"
"""The names of the tables."""
TITLES = {SFRAME: "SFrame", DWARF: "DWARF", ORC: "ORC"}


class Finding(NamedTuple):
    """A rule that the code shows to be wrong, from one address on."""

    address: int
    """Of the first instruction."""
    end: int
    """Behind the last one."""
    table: str
    """:data:`SFRAME`, :data:`DWARF` or :data:`ORC`."""
    what: str
    """``cfa``, ``ra`` or ``fp``."""
    rule: str
    """What the table says."""
    code: str
    """What the code makes of it."""
    origin: int | None
    """Address of the instruction since which that is so, where it can be told."""
    instruction: str
    """That instruction, in objdump's notation."""
    assumes: tuple[str, ...] = ()
    """What the finding rests on and the file does not show, such as ``callee changes r11``: then it is a warning, and
    the rule is counted as unknown."""


class Counts(NamedTuple):
    """How many instructions a table was judged at; together, all that there are."""

    proved: int
    wrong: int
    unknown: int
    not_examined: int = 0
    """The table has no row for them."""

    def plus(self, other: Counts) -> Counts:
        """Return the sum of two."""
        return Counts(*(one + more for one, more in zip(self, other)))


NONE = Counts(0, 0, 0)


class Unknown(NamedTuple):
    """Instructions, one behind the other, for which it is unknown whether a table is right."""

    address: int
    """Of the first."""
    table: str
    """:data:`SFRAME`, :data:`DWARF` or :data:`ORC`."""
    why: str
    origin: int | None
    """Address of the instruction since which that is so, where it was looked for and can be told."""
    instruction: str
    """That instruction, in objdump's notation."""
    instructions: int
    """How many."""


Verdicts = Mapping[int, Judgements]
"""By the address of the instruction."""


def counted(verdicts: Mapping[int, Judgements]) -> Counts:
    """Count verdicts."""
    worst = [judgements.worst for judgements in verdicts.values() if judgements is not PROVED]
    wrong, unknown = worst.count(Judgement.WRONG), worst.count(Judgement.UNKNOWN)
    return Counts(len(verdicts) - wrong - unknown, wrong, unknown)


def unknown_in(verdicts: Mapping[str, Verdicts]) -> tuple[Unknown, ...]:
    """Return what is unknown by the verdicts on one function."""
    found: list[Unknown] = []
    for table, by_address in verdicts.items():
        previous = None
        if all(judged is PROVED for judged in by_address.values()):
            continue
        for pc, judged in sorted(by_address.items()):
            reason = (judged.why, judged.origin, judged.instruction) if judged.worst is Judgement.UNKNOWN else None
            if reason is not None and reason == previous:
                found[-1] = found[-1]._replace(instructions=found[-1].instructions + 1)
            elif reason is not None:
                found.append(Unknown(pc, table, *reason, 1))
            previous = reason
    return tuple(found)


class Part(NamedTuple):
    """What was found in one function, entered in some way."""

    verdicts: Mapping[str, Verdicts]
    """By table."""
    findings: tuple[Finding, ...]
    unreached: frozenset[int] = frozenset()
    """Addresses of instructions that nothing leads to: the verdict on them is that nothing is known."""


class FunctionResult(NamedTuple):
    """What was found from the entry of one function."""

    start: int
    instructions: int
    """How many it has, without padding."""
    counts: Mapping[str, Counts]
    """By table."""
    findings: tuple[Finding, ...]
    unknown: tuple[Unknown, ...]
    wanted: Mapping[str, Verdicts]
    """By table: the verdicts at the addresses that were asked for."""
    elsewhere: Mapping[int, Part]
    """What was found in other functions that this one jumps into with its frame, by their starts."""
    continued: frozenset[int]
    """Starts of functions that are entered so at their first instruction."""
    called: tuple[int, ...]
    """Starts of functions that are called, or jumped to as a call would enter them."""
    returns: bool
    """Whether any path leaves it for its caller, or may."""
    changes_fp: bool
    """Whether it certainly returns with another frame pointer than it was entered with."""
    moves_sp: int | None
    """How many bytes higher than by the ABI the stack pointer is where it returns; ``None``: sometimes."""
    comes_back: bool
    """Whether a path certainly returns to its caller."""
    presumes: bool
    """Whether a call was taken not to return for what else leads behind it."""
    complete: bool
    """``False``: the function was given up, being too large."""
    ends_as_entered: bool
    """Whether it is left with nothing of its frame on all paths, as the ABI has it at a function's entry."""

    def at(self, start: int) -> FunctionResult:
        """Return the result of the same function at another address, without what is called there."""
        if not self.unknown:
            return self._replace(start=start, called=())
        moved = start - self.start
        unknown = tuple(
            one._replace(address=one.address + moved, origin=None if one.origin is None else one.origin + moved)
            for one in self.unknown
        )
        return self._replace(start=start, called=(), unknown=unknown)


class FunctionVerdict(NamedTuple):
    """How one function came out."""

    start: int
    end: int
    worst: Mapping[str, Judgement]
    """By table; a table that does not describe the function is missing."""


class CodeVerdict(NamedTuple):
    """How one file came out."""

    functions: Sequence[FunctionVerdict]
    instructions: int
    counts: Mapping[str, Counts]
    """By table."""
    findings: tuple[Finding, ...]
    unknown: tuple[Unknown, ...]
    """By function and table."""
    wanted: Mapping[str, Verdicts]
    """By table: the verdicts at the addresses that were asked for."""
    given_up: int
    """How many functions were too large."""
    sframe_entries: int | None = None
    """How many entries SFrame has, where these are not functions."""
