"""The results of checking tables against the code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sframe_unwind.code.interpret.run import Passed
from sframe_unwind.code.interpret.stores import Written
from sframe_unwind.code.judge.judgement import PROVED, Judgement, Judgements
from sframe_unwind.named_tuple import NamedTuple

SFRAME, DWARF, ORC = "sframe", "dwarf", "orc"
"""The names of the tables."""
TITLES = {SFRAME: "SFrame", DWARF: "DWARF", ORC: "ORC"}


class Finding(NamedTuple):
    """A rule that the code shows to be wrong, from one address on."""

    address: int
    """Address of the first instruction."""
    end: int
    """Address after the last instruction."""
    table: str
    """:data:`SFRAME`, :data:`DWARF` or :data:`ORC`."""
    what: str
    """``cfa``, ``ra`` or ``fp``."""
    rule: str
    """The table's rule."""
    code: str
    """The rule according to the code."""
    origin: int | None
    """Address of the instruction after which the code's rule differs; ``None``: not known."""
    instruction: str
    """That instruction, in objdump's notation."""
    assumes: tuple[str, ...] = ()
    """Assumptions of the finding that the file does not prove, such as ``callee changes r11``.  With assumptions, it
    is a warning, and the rule counts as unknown."""


class Counts(NamedTuple):
    """Numbers of instructions with each judgement of a table; together, all instructions."""

    proved: int
    wrong: int
    unknown: int
    not_examined: int = 0
    """The table has no row for them."""

    def plus(self, other: Counts) -> Counts:
        """Return the sum of two counts."""
        return Counts(*(one + more for one, more in zip(self, other)))


NONE = Counts(0, 0, 0)


class Unknown(NamedTuple):
    """Consecutive instructions for which it is unknown whether a table is right."""

    address: int
    """Address of the first instruction."""
    table: str
    """:data:`SFRAME`, :data:`DWARF` or :data:`ORC`."""
    why: str
    origin: int | None
    """Address of the instruction that makes it unknown; ``None``: not wanted, or not known."""
    instruction: str
    """That instruction, in objdump's notation."""
    instructions: int
    """Number of instructions."""


Verdicts = Mapping[int, Judgements]
"""By the address of the instruction."""


def counted(verdicts: Mapping[int, Judgements]) -> Counts:
    """Count the verdicts of each kind."""
    worst = [judgements.worst for judgements in verdicts.values() if judgements is not PROVED]
    wrong, unknown = worst.count(Judgement.WRONG), worst.count(Judgement.UNKNOWN)
    return Counts(len(verdicts) - wrong - unknown, wrong, unknown)


def unknown_in(verdicts: Mapping[str, Verdicts]) -> tuple[Unknown, ...]:
    """Return the unknown instructions according to the verdicts on one function."""
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
    """The findings in one function, for one way of entering it."""

    verdicts: Mapping[str, Verdicts]
    """By table."""
    findings: tuple[Finding, ...]
    unreached: frozenset[int] = frozenset()
    """Addresses of instructions that nothing leads to: the verdict on them is unknown."""


class FunctionResult(NamedTuple):
    """The findings from the entry of one function."""

    start: int
    instructions: int
    """Number of instructions, without padding."""
    counts: Mapping[str, Counts]
    """By table."""
    findings: tuple[Finding, ...]
    unknown: tuple[Unknown, ...]
    wanted: Mapping[str, Verdicts]
    """By table: the verdicts at the addresses that were asked for."""
    elsewhere: Mapping[int, Part]
    """The findings in other functions that this one jumps into with its frame, by their starts."""
    continued: frozenset[int]
    """Starts of functions that are entered this way at their first instruction."""
    called: tuple[int, ...]
    """Starts of functions that are called, or jumped to in the state of a call."""
    called_within: tuple[int, ...]
    """Called addresses that are in other functions, but not their starts."""
    returns: bool
    """Whether any path returns to the caller, or may."""
    changes_fp: bool
    """Whether it certainly returns with another frame pointer than at its entry."""
    moves_sp: int | None
    """Number of bytes by which the stack pointer is higher than the ABI says when it returns; ``None``: only
    sometimes."""
    comes_back: bool
    """Whether a path certainly returns to its caller."""
    presumes: bool
    """Whether a call was assumed not to return because of the other code that leads to the address after it."""
    complete: bool
    """``False``: the function is too large and was given up."""
    ends_as_entered: bool
    """Whether it is left without a frame on all paths, in the state that the ABI has at a function's entry."""
    rests_on_effects: bool
    """Whether the registers were examined that the functions of the file change."""
    stores: frozenset[Written]
    """Its stores above its frame and through pointers that it got."""
    passed: frozenset[Passed]
    """The pointers to saved registers that it passes to functions of the file."""

    def at(self, start: int) -> FunctionResult:
        """Return the result of the same function at another address, without what is called there."""
        if not self.unknown:
            return self._replace(start=start, called=(), called_within=())
        moved = start - self.start
        unknown = tuple(
            one._replace(address=one.address + moved, origin=None if one.origin is None else one.origin + moved)
            for one in self.unknown
        )
        return self._replace(start=start, called=(), called_within=(), unknown=unknown)


class FunctionVerdict(NamedTuple):
    """The result for one function."""

    start: int
    end: int
    worst: Mapping[str, Judgement]
    """By table; a table that does not describe the function is missing."""


class CodeVerdict(NamedTuple):
    """The result for one file."""

    functions: Sequence[FunctionVerdict]
    instructions: int
    counts: Mapping[str, Counts]
    """By table."""
    findings: tuple[Finding, ...]
    unknown: tuple[Unknown, ...]
    """By function and table."""
    wanted: Mapping[str, Verdicts]
    """By table, the verdicts at the wanted addresses."""
    given_up: int
    """Number of functions that are too large."""
    sframe_entries: int | None = None
    """Number of SFrame entries, if entries are not functions."""
