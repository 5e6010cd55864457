"""Compares the profile ``linux-user`` with a second implementation of its rules, on damaged sections.

    python -m lab.lint.mutations --count 20000

They must agree on refused and accepted sections, and on losses down to the byte.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections import Counter
from collections.abc import Iterable
from random import Random

from lab.fuzz.fields import fields
from lab.fuzz.mutations import Mutator
from lab.fuzz.seeds import Seed, seeds
from lab.lint import linux_reader
from sframe_unwind.lint import PROFILES, lint_section
from sframe_unwind.lint.subject import Subject
from sframe_unwind.lint.verdict import Outcome
from sframe_unwind.sframe.section import Section

USER = PROFILES["linux-user"]
_AROUND = 32
"""Number of bytes of text before the first function and after the last."""
_LOAD_ADDRESS = 0x7F00_0000_0000
"""Load address of a file that can be loaded anywhere."""
_OUTCOMES = {Outcome.REFUSED: "refused", Outcome.LOSES: "loses", Outcome.ACCEPTED: "accepted"}


@functools.cache
def chosen() -> tuple[Seed, ...]:
    """Return sections of version 3, which Linux reads, and one of another version."""
    return tuple(seed for seed in seeds() if seed.data[2] == 3 or seed.name == "free_walk amd64 version 2")


@functools.cache
def mutator() -> Mutator:
    return Mutator(chosen(), fields)


@functools.cache
def _surroundings() -> dict[str, tuple[Subject, tuple[int, int]]]:
    """Return the file around each seed."""
    found = {}
    for seed in chosen():
        section = Section(seed.data, seed.address)
        arch = section.arch
        assert arch is not None
        functions = list(section.functions())
        text = min(one.start for one in functions) - _AROUND, max(one.end for one in functions) + _AROUND
        found[seed.name] = (
            Subject(data=seed.data, address=seed.address, text=(text,), code=(text,), arch=arch, is_object=False),
            text,
        )
    return found


def ours(seed: Seed, is_movable: bool) -> linux_reader.Verdict:
    """Return the verdict of `lint` for Linux."""
    subject, _ = _surroundings()[seed.name]
    (judgement,) = lint_section(subject._replace(data=seed.data, is_movable=is_movable), [USER]).judgements
    return _OUTCOMES[judgement.outcome], tuple(sorted((loss.start, loss.size) for loss in judgement.losses))


def theirs(seed: Seed, is_movable: bool) -> linux_reader.Verdict:
    """Return the verdict of the tests' own reader, which gets a position-independent file at its load address."""
    subject, (low, high) = _surroundings()[seed.name]
    base = _LOAD_ADDRESS if is_movable else 0
    text = low + base, high + base
    outcome, lost = linux_reader.verdict(seed.data, seed.address + base, text, subject.arch.byteorder)
    return outcome, tuple(sorted((start - base, size) for start, size in lost))


def compare(numbers: Iterable[int], seen: Counter[str]) -> list[str]:
    """Compare the mutations of some numbers; return the differences.

    :param seen: counts the verdicts.
    """
    different = []
    for number in numbers:
        seed = mutator().mutate(Random(number))
        is_movable = bool(number % 2)
        first, second = ours(seed, is_movable), theirs(seed, is_movable)
        seen[first[0]] += 1
        if first != second:
            different.append(f"{number} ({seed.name}): {first}, by the other {second}")
    return different


def main() -> int:
    """Run the command; return its exit status: 1 after a difference."""
    parser = argparse.ArgumentParser(prog="python -m lab.lint.mutations")
    parser.add_argument("--count", type=int, default=20_000, metavar="N", help="how many sections (default: 20000)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the first one's number (default: 0)")
    options = parser.parse_args()
    started = time.monotonic()
    seen: Counter[str] = Counter()
    different = compare(range(options.first, options.first + options.count), seen)
    print("\n".join(different[:20]))
    print(f"{options.count:,} sections in {time.monotonic() - started:.0f} s: {dict(seen)}")
    print(f"{len(different)} differences")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
