"""Compares the verdicts of ``lint`` with the behaviour of readers, on damaged sections.

    python -m lab.readers.mutated [--count N] [--first N] [--reader NAME] [--keep FOLDER]

Each reader gets N mutations of sections that it supports.  If its profile accepts a section, the reader must read it,
and find the row of this project's decoder at each address of a function that is not lost; otherwise the exit status is
1.  A profile may be stricter than its reader: the output has the number of such sections for each rule.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from lab.fuzz.fields import fields
from lab.fuzz.mutations import Mutator
from lab.fuzz.seeds import Seed, seeds
from lab.readers.corpus import cases
from lab.readers.notation import SAME, Row, of_rule
from lab.readers.readers import LITTLE, available
from lab.readers.running import Reader, Request, ask
from sframe_unwind.address import RangeMap
from sframe_unwind.arch import Arch
from sframe_unwind.errors import FormatError
from sframe_unwind.lint import PROFILES, SPEC, Profile, gather
from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.functions import Described
from sframe_unwind.lint.judging import Facts, judge
from sframe_unwind.lint.verdict import Judgement, Outcome
from sframe_unwind.sframe.constants import ARCH_BY_ABI, AbiNumber
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Miss
from tests.lint.sections import subject

_AT_ONCE = 500
"""How many sections one process of a reader is asked for."""
_MAX_ADDRESSES = 60
_MAX_DISTANCE = 1 << 30
"""The largest distance of an address to look up from the section: some readers have 32 bits for the difference."""
_MAX_ADDRESS = 1 << 46
"""The end of the addresses at which processes have code.  What readers do beyond it does not matter."""
_AT_CFA = "[cfa+0]"


class Fate(str, Enum):
    """What a reader does with a damaged section."""

    SAME = "reads"
    """It finds a row at each address for which one is promised, and the row is that of this project's decoder."""
    OTHER = "reads other rows"
    LOSES = "loses"
    """It finds no row at an address for which one is promised."""
    REFUSES = "refuses"
    CRASHES = "crashes"


class Damaged(NamedTuple):
    """A mutated section, and the findings of ``lint`` in it."""

    number: int
    """The number of the mutation."""
    name: str
    """The name of the section that was mutated."""
    facts: Facts
    judgement: Judgement
    pcs: tuple[int, ...]
    """The addresses to look up."""

    @property
    def request(self) -> Request:
        """The request to a reader."""
        return Request(self.facts.subject.data, self.facts.subject.address, self.pcs)

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules because of which the profile refuses the section or loses functions."""
        refused = (refusal.finding.rule.id for refusal in self.judgement.refusals)
        lost = (rule.id for loss in self.judgement.losses for rule in loss.rules)
        return tuple(sorted({*refused, *lost}))

    @property
    def broken(self) -> list[str]:
        """The rules that FDEs and rows break."""
        return sorted({rule.id for one in self.facts.functions for rule, _ in one.broken})

    def promised(self) -> list[Described | None]:
        """Return for each address the function whose row the profile promises; ``None``: it does not.

        Where functions overlap, or FDEs out of order mislead a bisection, which function is found is chance: the
        profile names some that are not.  No code is where the section is.
        """
        if any(finding.rule is c.FDE_UNSORTED for finding in self.facts.order):
            return [None] * len(self.pcs)
        functions = [one for one in self.facts.functions if not one.table]
        all_of_them = RangeMap((one.start, one.end, one) for one in functions)
        lost = {loss.start for loss in self.judgement.losses}
        first, after = self.request.address, self.request.address + len(self.request.section)
        kept = RangeMap(
            (one.start, one.end, one)
            for one in functions
            if one.start not in lost
            and len(all_of_them.overlapping(one.start, one.end)) == 1
            and (one.end <= first or after <= one.start)
        )
        return [kept.get(pc) for pc in self.pcs]


class Compared(NamedTuple):
    """The result of one section in a reader."""

    damaged: Damaged
    fate: Fate
    detail: str

    @property
    def is_wrong(self) -> bool:
        """Whether the reader behaves differently from its profile, which accepts the section."""
        return self.fate is not Fate.SAME and self.damaged.judgement.outcome is not Outcome.REFUSED

    @property
    def is_stricter(self) -> bool:
        """Whether the profile refuses a section that the reader reads."""
        return self.fate is Fate.SAME and self.damaged.judgement.outcome is Outcome.REFUSED


def profile_of(reader: Reader) -> Profile:
    """Return the profile of a reader; for one without, that of the specification."""
    return SPEC if reader.profile is None else PROFILES[reader.profile]


def damaged(reader: Reader, numbers: Iterable[int]) -> Iterator[Damaged]:
    """Yield the mutations of some numbers for a reader, except those with code where no process has any."""
    profile = profile_of(reader)
    mutator = _mutator(reader.versions, reader.abis & LITTLE if reader.swaps else reader.abis)
    for number in numbers:
        seed = mutator.mutate(Random(number))
        around = subject(data=seed.data, arch=_machines()[seed.name], text=(0, 1 << 64))
        try:
            facts = gather(around._replace(address=seed.address))
        except FormatError:  # the same rows over and over: there is no verdict
            continue
        if all(one.start >= 0 and one.end < _MAX_ADDRESS for one in facts.functions):
            judgement, _ = judge(facts, profile)
            yield Damaged(number, seed.name, facts, judgement, _addresses(seed, facts))


@functools.cache
def _mutator(versions: frozenset[int], abis: frozenset[int]) -> Mutator:
    return Mutator(tuple(one for one in _good() if one.data[2] in versions and one.data[4] in abis), fields)


@functools.cache
def _good() -> tuple[Seed, ...]:
    """Return sections of real producers, and the cases that are valid."""
    return (*seeds(), *(Seed(case.name, case.section, case.address) for case in cases() if case.is_valid))


@functools.cache
def _machines() -> dict[str, Arch]:
    """Return the machine of each section, by name."""
    return {one.name: ARCH_BY_ABI[AbiNumber(one.data[4])] for one in _good()}


def _addresses(seed: Seed, facts: Facts) -> tuple[int, ...]:
    """Return addresses in the functions: their ends, those beside a part without a row, and some random ones."""
    random = Random(seed.data)
    found: set[int] = set()
    for one in facts.functions:
        if not one.table and one.size <= _MAX_DISTANCE:
            edges = {0, one.repetition, one.size, *(edge for piece in one.pieces for edge in (piece.low, piece.high))}
            found |= {one.start + edge + step for edge in edges for step in (-1, 0, 1)}
            found |= {one.start + random.randrange(one.size) for _ in range(4) if one.size}
    near = sorted(pc for pc in found if abs(pc - seed.address) < _MAX_DISTANCE and pc >= 0)
    return tuple(near if len(near) <= _MAX_ADDRESSES else random.sample(near, _MAX_ADDRESSES))


def compare(reader: Reader, numbers: Sequence[int]) -> Iterator[Compared]:
    """Yield the behaviour of a reader for each mutation with one of the numbers."""
    for first in range(0, len(numbers), _AT_ONCE):
        sections = list(damaged(reader, numbers[first : first + _AT_ONCE]))
        for section, answer in zip(sections, ask(reader.of_all_rows, [one.request for one in sections])):
            if "crashed" in answer:
                yield Compared(section, Fate.CRASHES, answer["crashed"])
            elif "refused" in answer:
                yield Compared(section, Fate.REFUSES, answer["refused"])
            else:
                yield Compared(section, *_read(reader, section, answer["rows"]))


def _read(reader: Reader, section: Damaged, rows: Sequence[Row]) -> tuple[Fate, str]:
    """Compare the rows of a reader with those of this project's decoder."""
    other = ""
    for pc, function, got, wanted in zip(section.pcs, section.promised(), rows, _ours(section)):
        if function is None or wanted is None:
            continue
        if got is None or "error" in got:
            return Fate.LOSES, f"at {pc:#x} {got}, not {wanted}"
        got, wanted = (_plain(reader, function, row) for row in (got, wanted))
        if got != wanted:
            other = f"at {pc:#x} {got}, not {wanted}"
    # What fixed offsets mean that no ABI has is open: readers take them and the words of a row each in its own way.
    if other and not any(finding.rule is c.FIXED_OFFSET for finding in section.facts.section):
        return Fate.OTHER, other
    return Fate.SAME, ""


def _ours(section: Damaged) -> list[Row]:
    """Return the rows of this project's decoder; ``None``: there are none, or it refuses the function."""
    try:
        tables = Section(section.facts.subject.data, section.facts.subject.address).tables
    except FormatError:
        return [None] * len(section.pcs)
    rows: list[Row] = []
    for pc in section.pcs:
        try:
            found = tables[0].lookup(pc)
            rows.append(None if isinstance(found, Miss) else of_rule(found.rule))
        except FormatError:
            rows.append(None)
    return rows


def _plain(reader: Reader, function: Described, row: dict[str, Any]) -> dict[str, Any]:
    """Return those parts of a row that all readers give alike.

    A register that is saved at the CFA itself is none for this project's decoder: the CFA is where the caller's frame
    begins.  libsframe finds the return address of flexible rows at the wrong word (``docs/readers.md``).
    """
    shown = {key: SAME if value == _AT_CFA else value for key, value in row.items()}
    if reader.swaps and any(rule is c.FLEXIBLE for rule, _ in function.broken):
        shown.pop("ra", None)
    if not reader.shows_signed:
        shown.pop("signed", None)
    return shown


class Tally:
    """Counts the results of the sections."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[Outcome, Fate]] = Counter()
        self.stricter: Counter[tuple[str, ...]] = Counter()
        """The number of sections by the rules for which they were refused."""
        self.wrong: list[Compared] = []
        self.crashes: dict[tuple[str, ...], Compared] = {}
        """The smallest section that crashes the reader, by signal and rules."""

    def add(self, one: Compared) -> None:
        """Count one section."""
        self.seen[one.damaged.judgement.outcome, one.fate] += 1
        if one.is_stricter:
            self.stricter[one.damaged.rules] += 1
        if one.is_wrong:
            self.wrong.append(one)
        if one.fate is Fate.CRASHES:
            kind = (one.detail, *one.damaged.rules)
            self.crashes[kind] = min(self.crashes.get(kind, one), one, key=_size)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report."""
        for (outcome, fate), count in sorted(self.seen.items()):
            yield f"  {outcome.value}, and the reader {fate.value}: {count:,}"
        for rules, count in self.stricter.most_common(12):
            yield f"  refused, and read: {count:,} {' '.join(rules)}"
        for one in self.wrong[:20]:
            verdict, broken = one.damaged.judgement.outcome.value, one.damaged.broken
            yield f"  WRONG {one.damaged.number} ({one.damaged.name}): {verdict}, and the reader {one.fate.value}"
            yield f"    {one.detail}; {' '.join(broken)}"


def _size(one: Compared) -> int:
    return len(one.damaged.request.section)


class Campaign(NamedTuple):
    """The options of a command that tries mutations."""

    readers: Sequence[Reader]
    numbers: range
    """The numbers of the mutations for each reader."""
    keep: Path | None
    """Where to write the smallest section of each kind of crash."""


def campaign(command: str) -> Campaign:
    """Return the campaign that the options of a command describe, and print the names of missing readers.

    :param command: the module that ``python -m`` runs.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {command}")
    parser.add_argument("--count", type=int, default=20_000, metavar="N", help="mutations per reader (default: 20000)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the first one's number (default: 0)")
    parser.add_argument("--reader", metavar="NAME", help="this one alone")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the smallest section of each kind of crash")
    options = parser.parse_args()
    readers, missing = available()
    chosen = [one for one in readers if options.reader in (None, one.name)]
    if not chosen:
        parser.error(f"no reader is called {options.reader}")
    print(*(f"not run: {why}" for why in missing), sep="\n", end="\n" if missing else "")
    return Campaign(chosen, range(options.first, options.first + options.count), options.keep)


def main() -> int:
    """Compare, and print the results; return 1 if a reader behaves differently from its profile, else 0."""
    readers, numbers, keep = campaign("lab.readers.mutated")
    status = 0
    for reader in readers:
        started, tally = time.monotonic(), Tally()
        for one in compare(reader, numbers):
            tally.add(one)
        total, wrong = sum(tally.seen.values()), len(tally.wrong)
        print(f"{reader.name} and the profile {profile_of(reader).name}: {total:,} sections, {wrong} wrong", end="")
        print(f" ({time.monotonic() - started:.0f} s)", *tally.lines(), sep="\n", flush=True)
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            for kind, one in tally.crashes.items():
                name = "-".join((reader.name.replace(" ", "-"), *kind, str(one.damaged.number)))
                Path(keep, name).write_bytes(one.damaged.request.section)
        status |= bool(wrong) and reader.profile is not None
    return status


if __name__ == "__main__":
    sys.exit(main())
